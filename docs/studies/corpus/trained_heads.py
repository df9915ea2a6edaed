"""Classes recognised by the logits of linear heads that were trained on them."""

import numpy as np
from scipy.ndimage import shift

from studies.corpus import (
    characters,
    functions,
    manuals,
    melodies,
    pictograms,
    pronunciations,
    speech,
    spelling,
)
from studies.corpus.characters import blurred, letter_drawings
from studies.corpus.functions import function_versions
from studies.corpus.heads import margin_head, softmax_head, unit, with_constant
from studies.corpus.linkage import mistyped
from studies.corpus.manuals import manual_pages
from studies.corpus.melodies import hummed, motifs, steps
from studies.corpus.packages import Packages
from studies.corpus.pictograms import emoji_features, emoji_pictures
from studies.corpus.population import Population, Recipe, shuffled
from studies.corpus.pronunciations import arpabet, phone_ngrams, spoken_words
from studies.corpus.shared_data import english_words
from studies.corpus.speech import sound_vectors
from studies.corpus.spelling import misspellings_of
from studies.corpus.text_features import LatentSemantics, character_ngrams, ngrams
from studies.corpus.voices import espeak, espeak_phonemes, flite


def thinned[Item](items: list[Item], share: float, rng: np.random.Generator) -> list[Item]:
    """Return a random share of the items, in their order; never none of them."""
    kept = rng.random(len(items)) < share
    if not kept.any():
        kept[rng.integers(len(items))] = True
    return [item for item, keep in zip(items, kept, strict=True) if keep]


def _manual_head(packages: Packages) -> Population:
    pages = shuffled(manual_pages(packages), 18)
    tested, others = pages[:5_000], pages[5_000:]
    vectors = LatentSemantics([first + second for first, second in others], 200)
    rng = np.random.default_rng(18)
    y = np.repeat(np.arange(len(tested)), 6)
    training = unit(vectors([thinned(tested[place][0], 0.3, rng) for place in y]))
    weights = softmax_head(with_constant(10 * training), y, penalty=1e-5)
    probes = with_constant(10 * unit(vectors([second for _, second in tested])))
    return Population(weights, probes, np.arange(len(tested)), "dot")


def _pronunciation_head(packages: Packages) -> Population:
    entries = spoken_words(packages)
    order = shuffled(sorted(entries), 19)
    tested, others = order[:6_000], order[6_000:11_000]
    space = LatentSemantics([phone_ngrams(entries[word]) for word in others], 256)
    phones = sorted({phone for word in others for phone in entries[word]})
    rng = np.random.default_rng(19)

    def misheard(word: str) -> list[str]:
        """Replace each phoneme by a random one with probability .12."""
        return [
            str(rng.choice(phones)) if rng.random() < 0.12 else phone for phone in entries[word]
        ]

    y = np.repeat(np.arange(len(tested)), 6)
    training = unit(space([phone_ngrams(misheard(tested[place])) for place in y]))
    weights = softmax_head(with_constant(8 * training), y)
    spoken = espeak_phonemes(packages, tested, "en-us")
    probes = unit(space([phone_ngrams(arpabet(ipa)) for ipa in spoken]))
    return Population(weights, with_constant(8 * probes), np.arange(len(tested)), "dot")


def _letter_head(packages: Packages) -> Population:
    drawings = letter_drawings(packages)
    size = 16
    chosen = np.sort(np.random.default_rng(20).permutation(len(drawings.gallery))[:4_000])
    rng = np.random.default_rng(20)
    y = np.repeat(np.arange(chosen.size), 6)
    images = drawings.gallery[chosen][y].reshape(-1, size, size)
    moved = np.array([shift(image, rng.normal(0, 0.7, 2), order=1) for image in images])
    noisy = np.clip(moved + rng.normal(0, 0.15, moved.shape), 0, 1).reshape(len(moved), -1)
    training = blurred(noisy, size)
    mean, scale = training.mean(0), training.std()
    weights = softmax_head(with_constant((training - mean) / scale), y)
    tested = np.isin(drawings.y, chosen)
    probes = (blurred(drawings.probes[tested], size) - mean) / scale
    return Population(
        weights, with_constant(probes), chosen.searchsorted(drawings.y[tested]), "dot"
    )


def _spoken_head(packages: Packages) -> Population:
    spoken = shuffled(english_words(packages), 21)[:3_000]
    training = [
        sound_vectors(espeak(packages, spoken, voice, speed))
        for voice in ("en-us", "en-us+f2", "en-gb-x-rp")
        for speed in (140, 200)
    ]
    rows = np.concatenate(training)
    mean, scale = rows.mean(0), rows.std(0)
    y = np.tile(np.arange(len(spoken)), len(training))
    weights = softmax_head(with_constant((rows - mean) / scale), y, penalty=1e-3)
    voices = [sound_vectors(flite(packages, spoken, voice)) for voice in ("kal16", "slt")]
    probes = (np.concatenate(voices) - mean) / scale
    return Population(weights, with_constant(probes), np.tile(np.arange(len(spoken)), 2), "dot")


def _function_margin(packages: Packages) -> Population:
    old, new = function_versions(packages)
    chosen = shuffled(range(len(old)), 22)[:5_000]
    features = [ngrams(list(old[place]), (1, 2), ".") for place in chosen]
    space = LatentSemantics(features, 128)
    rng = np.random.default_rng(22)
    y = np.repeat(np.arange(len(chosen)), 5)
    training = space([ngrams(thinned(list(old[chosen[i]]), 0.6, rng), (1, 2), ".") for i in y])
    weights = margin_head(training, y, scale=20.0, margin=0.2)
    probes = unit(space([ngrams(list(new[place]), (1, 2), ".") for place in chosen]))
    return Population(weights, probes, np.arange(len(chosen)), "dot")


def _emoji_margin(packages: Packages) -> Population:
    templates, tested, _ = emoji_pictures(packages)
    rng = np.random.default_rng(23)
    y = np.repeat(np.arange(len(templates)), 8)
    moved = np.array(
        [np.roll(templates[i], rng.integers(-3, 4, 2), axis=(0, 1)) for i in y], np.float32
    )
    tone = rng.normal(1, 0.15, (len(y), 1, 1, 3)) * moved + rng.normal(0, 12, moved.shape)
    training = emoji_features(np.clip(tone, 0, 255).astype(int))
    mean = training.mean(0)
    weights = margin_head(training - mean, y, scale=30.0, margin=0.3)
    return Population(weights, unit(emoji_features(tested) - mean), np.arange(len(tested)), "dot")


def _misspelling_svm(packages: Packages) -> Population:
    from sklearn.svm import LinearSVC

    misspellings = misspellings_of(packages)
    order = shuffled(sorted(misspellings), 24)
    tested, others = order[:2_500], order[2_500:7_500]
    space = LatentSemantics([character_ngrams(word, (1, 2, 3)) for word in others], 200)
    rng = np.random.default_rng(24)
    y = np.repeat(np.arange(len(tested)), 4)
    typed = [mistyped(tested[place], 0.08, rng) if len(tested[place]) > 1 else "" for place in y]
    machine = LinearSVC(C=10.0, random_state=0, max_iter=200)
    machine.fit(space([character_ngrams(text, (1, 2, 3)) for text in typed]), y)
    weights = np.column_stack([machine.coef_, machine.intercept_])
    pairs = [(row, wrong) for row, word in enumerate(tested) for wrong in misspellings[word][:2]]
    probes = space([character_ngrams(wrong, (1, 2, 3)) for _, wrong in pairs])
    return Population(weights, with_constant(probes), np.array([row for row, _ in pairs]), "dot")


def _tune_ridge(packages: Packages) -> Population:
    from sklearn.linear_model import RidgeClassifier

    every = melodies.melodies(packages)
    others, tested = every[:3_000], every[3_000:7_000]
    space = LatentSemantics([motifs(steps(tune.pitches, tune.durations)) for tune in others], 256)
    rng = np.random.default_rng(25)
    y = np.repeat(np.arange(len(tested)), 4)
    machine = RidgeClassifier(alpha=0.1)
    machine.fit(space([motifs(hummed(tested[place], rng)) for place in y]), y)
    weights = np.column_stack([machine.coef_, machine.intercept_])
    probes = space([motifs(hummed(tune, rng)) for tune in tested])
    return Population(weights, with_constant(probes), np.arange(len(tested)), "dot")


_OWN_CLASSES = (
    "A head was trained on the classes themselves, from {} each that are simulated. The score is "
    "its logit. "
)

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="manual-head",
        kind="text",
        summary="manual pages from their second half; softmax head",
        about="Classes are 5,000 manual pages, drawn at random from those of manual-halves. A page "
        "is known by six random 30% of the words of its first half. The test instance is the "
        "second half, as it is. Families of similar pages stay. A wrong answer continues a page "
        "with the end of another.",
        classifier=_OWN_CLASSES.format("six texts") + "Softmax head with a bias on latent "
        "semantics of words (200 dimensions, unit length), learnt on other pages.",
        packages=manuals.RECIPES[0].packages,
        make=_manual_head,
        scores="logit",
    ),
    Recipe(
        name="pronunciation-head",
        kind="sounds",
        summary="words from the pronunciation by rules; softmax head",
        about="Classes are 6,000 spellings, drawn at random from the CMU Pronouncing Dictionary. A "
        "word is known by six copies of its pronunciation in which each phoneme is replaced by a "
        "random one with probability .12. The test instance is the pronunciation by the rules of "
        "espeak-ng; its errors are real. Homophones stay. A wrong answer is another word.",
        classifier=_OWN_CLASSES.format("six pronunciations") + "Softmax head with a bias on latent "
        "semantics of phonemes and of runs of two and three (256 dimensions, unit length), learnt "
        "on 5,000 other words.",
        packages=pronunciations.RECIPES[0].packages,
        make=_pronunciation_head,
        scores="logit",
    ),
    Recipe(
        name="letter-head",
        kind="characters in two typefaces",
        summary="letters in other typefaces; softmax head",
        about="Classes are 4,000 letters and numbers, drawn at random from those of "
        "letters-pixels. A letter is known by six copies of the drawing of Noto Sans, moved by "
        "about .7 pixels and with noise of .15. The test instances are its drawings by other "
        "fonts, without noise, one to three a class. Lookalikes of other scripts stay. A wrong "
        "answer is another character.",
        classifier=_OWN_CLASSES.format("six drawings") + "Softmax head with a bias on 16 x 16 grey "
        "pixels, smoothed by a Gaussian of one pixel.",
        packages=characters.RECIPES[0].packages,
        make=_letter_head,
        scores="logit",
    ),
    Recipe(
        name="spoken-head",
        kind="sounds",
        summary="English words in other synthetic voices; softmax head",
        about="Classes are 3,000 words, drawn at random from the lower-case words of a list of "
        "American English; inflected forms are separate classes. A word is known by six sounds of "
        "espeak-ng: three voices at two speeds. The two test instances are the word spoken by the "
        "voices kal16 and slt of flite. All voices are synthetic; no noise is added. A wrong "
        "answer is another word.",
        classifier="A softmax head was trained on the classes themselves. The score is its logit. "
        "Features are 13 mel-frequency cepstra at 20 equally spaced times, scaled, with a bias.",
        packages=speech.RECIPES[0].packages,
        make=_spoken_head,
        scores="logit",
    ),
    Recipe(
        name="function-margin",
        kind="code",
        summary="Python functions in a later version; CosFace head",
        about="Classes are 5,000 functions and methods, drawn at random from those of "
        "functions-versions. A function is known by five random 60% of the identifiers of its "
        "older body. The test instance is the newer body; the changes are real. A wrong answer "
        "takes a function for the successor of another.",
        classifier=_OWN_CLASSES.format("five bodies") + "Head of normalised weights, trained with "
        "softmax and a margin of .2 (CosFace): 20 times the cosine, on latent semantics of "
        "identifiers and of adjacent pairs (128 dimensions), learnt on the older bodies.",
        packages=functions.RECIPES[1].packages[:6],
        make=_function_margin,
        scores="logit",
    ),
    Recipe(
        name="emoji-margin",
        kind="emoji of two vendors",
        summary="emoji of another vendor; CosFace head",
        about="Classes are the emoji of the population emoji. An emoji is known by eight copies of "
        "Noto's picture, moved by up to three pixels, with other tones and noise. The test "
        "instance is the picture of EmojiOne, without noise. Tones of skin, families and flags "
        "make groups of similar classes. A wrong answer is another emoji.",
        classifier=_OWN_CLASSES.format("eight pictures") + "Head of normalised weights, trained "
        "with softmax and a margin of .3 (CosFace): 30 times the cosine, on histograms of the "
        "directions of edges and mean colours of 8 x 8 cells.",
        packages=pictograms.RECIPES[1].packages,
        make=_emoji_margin,
        scores="logit",
    ),
    Recipe(
        name="misspelling-svm",
        kind="text",
        summary="English words from real misspellings; support vector machines",
        about="Classes are 2,500 English words and phrases, drawn at random from the corrections "
        "in codespell's dictionary. A word is known by four copies with typing errors at a rate of "
        ".08. The test instances are up to two of its real misspellings. A wrong answer corrects a "
        "misspelling to another word.",
        classifier=_OWN_CLASSES.format("four words") + "Linear support vector machines, one "
        "against the rest, on latent semantics of runs of one to three characters (200 "
        "dimensions), learnt on 5,000 other words.",
        packages=spelling.RECIPES[0].packages,
        make=_misspelling_svm,
        scores="logit",
    ),
    Recipe(
        name="tune-ridge",
        kind="sounds",
        summary="melodies from simulated humming; ridge classifiers",
        about="Classes are 4,000 melodies, drawn at random from those of hummed-tunes. A melody is "
        "known by four phrases of 24 notes, as someone hums them from memory with errors, and "
        "the test instance is another one. Phrases begin at random places. A wrong answer is "
        "another tune.",
        classifier=_OWN_CLASSES.format("four phrases") + "Ridge classifiers, one against the rest, "
        "on latent semantics of motifs (256 dimensions), learnt on 3,000 other tunes.",
        packages=melodies.RECIPES[1].packages,
        make=_tune_ridge,
        scores="logit",
    ),
)
