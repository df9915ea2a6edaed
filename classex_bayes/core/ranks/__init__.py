"""From scores or embeddings to ranks.

`n_better` is the number of wrong classes ("competitors") that score better than the true class of
an instance: the "better classes". Its rank is 1 + n_better. The package computes with n_better and
shows ranks to users.

A source of scores hands out blocks of test instances, and `classex_bayes.core.rank_pass` ranks
them and adds up what it finds:

1. `sources` or `embeddings` compare a block with all classes, in single precision as far as the
   result is certain. Pairs (instance, competitor) within the rounding bound are "close".
2. `packed_bits` does the comparison in code compiled for the processor. `device` does it in the
   array namespace of the device that holds the arrays, and returns the same packed bits.
3. The pass decides the close pairs by the reference formula, breaks ties and counts.
4. `packed_bits` keeps who beat whom, and sums over it.

A source ranks itself (`statistics`), and finds its `nearest` classes and its `sample`, so that no
other code asks of which kind it is. `compared_scores` keeps the outcomes of comparisons in place of
scores that come in batches. `nearest` has the nearest wrong classes of each instance, and `sample`
the first instances with their scores. `threads` divides the work.
"""
