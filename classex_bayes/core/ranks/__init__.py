"""From scores or embeddings to ranks.

`n_better` is the number of wrong classes ("competitors") that score better than the true class of
an instance: the "better classes". Its rank is 1 + n_better. The package computes with n_better and
shows ranks to users.

A pass over the scores goes through these modules:

1. `sources` or `embeddings` compare test instances with all classes, in single precision as far as
   the result is certain. Pairs (instance, competitor) within the rounding bound are "close".
2. `packed_bits` or `device` do the comparison, in code compiled for the processor or in the array
   namespace of the device that holds the arrays.
3. `rank_counts` decides the close pairs by the reference formula, breaks ties and counts.
4. `packed_bits` or `device` keep who beat whom, as packed bits or on the device, and sum over it.

`compared_scores` keeps the outcomes of comparisons in place of scores that come in batches.
`threads` divides the work.
"""
