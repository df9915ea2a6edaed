"""From scores or embeddings to ranks.

The rank of a true class is 1 + its losses, and its losses are the number of wrong classes
("competitors") that score above it. Everything inside the package counts losses; users see ranks.

A pass over the scores goes through these modules:

1. `sources` or `embeddings`: compares test instances with all classes, in single precision where
   that is certain. Pairs (instance, competitor) within the bound on rounding stay open ("close").
2. `tiles` or `array_backends`: the comparison itself, compiled for the processor or in the
   namespace of the device that holds the arrays; `packed_bits` is what they write.
3. `losses`: decides the close pairs by the reference formula, breaks ties (`ties`), counts losses.

`array_access` reads rows of arrays on disks and devices, `threads` shares the work, `progress`
reports how far it is. `defeats` and `shards` put together tests that were scored in parts.
"""
