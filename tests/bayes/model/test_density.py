"""The written-out log density against PyMC's, arbitrary precision and differentiation."""

import mpmath
import numba
import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import norm, t

from classex_bayes import SourceTask
from classex_bayes.bayes import MixturePrior
from classex_bayes.bayes.idata import pooled_groups
from classex_bayes.bayes.model import density
from classex_bayes.bayes.model.likelihoods import BernsteinData, build_model
from classex_bayes.bayes.model.nutpie_model import layout, pack

N_BETTER = SourceTask.from_ranks([1] * 45 + [2, 3, 6, 10, 31], range(50), n_classes=50)
OTHER = SourceTask.from_ranks(
    [1, 4, 4, 2, 1, 1, 8, 101], range(8), n_classes=200, untested="competitors"
)
CURVE = SourceTask.from_accuracies([2, 5, 20], [0.99, 0.95, 0.8], n_test=100, n_classes=20)
PRIORS = [
    MixturePrior(),
    MixturePrior(separation=0, bandwidth=0.3, upper=6, n_functions=4),  # one is left of 4
    MixturePrior(
        imbalance=0, location=1.0, location_sd=0.7, scale=2.0, scale_log_sd=0.3, scale_freedom=7
    ),
    MixturePrior(deviation=0),
    MixturePrior(tail=-1.0, tail_sd=0.0),  # the logarithm
    MixturePrior(tail=0.25, separation=0),
]
TASKS = {"n_better": (N_BETTER,), "curve": (CURVE,), "pool": (N_BETTER, OTHER)}


def for_python(function):
    """A function of `density`, which only compiled functions can call."""
    return numba.njit(lambda *arguments: function(*arguments))


log_density, moved_log_density = map(for_python, [density.log_density, density.moved_log_density])
filled, from_moved, expand = map(for_python, [density.filled, density.from_moved, density.expand])


def data_of(prior, tasks):
    return pooled_groups(tasks, prior.basis)[0]


def points(prior, number, seed=0):
    start = layout(prior).start
    return start + np.random.default_rng(seed).normal(0, 1.0, (number, start.size))


def density_at(x, prior, packed, function=log_density):
    """Log density at free parameters, and its derivatives by these."""
    every = filled(x, packed)
    gradient = np.empty(every.size)
    value = function(every, packed, gradient)
    return value, gradient[layout(prior).places]


# By day all priors are compared in arbitrary precision, and their gradients with differences.
BY_NIGHT = [PRIORS[0], *PRIORS[2:]]


def at_night(prior, *others):
    """Parameters of a comparison with PyMC, which builds and compiles a model for each."""
    marks = [pytest.mark.nightly] if prior in BY_NIGHT else []
    return pytest.param(prior, *others, marks=marks)


# A likelihood sees only weights and knots: one prior of few knots meets every task.
OF_ALL_TASKS = PRIORS[1:2]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("prior", "tasks"),
    [
        at_night(prior, tasks)
        for prior in PRIORS
        for tasks in TASKS
        if tasks == "n_better" or prior in OF_ALL_TASKS
    ],
    ids=str,
)
def test_density_and_gradient_are_those_of_the_pymc_model(prior, tasks):
    data = data_of(prior, TASKS[tasks])
    theirs = build_model(prior, data).logp_dlogp_function(ravel_inputs=True, mode="FAST_COMPILE")
    theirs.set_extra_values({})
    packed = pack(prior, data)
    difference = []
    for x in points(prior, 15):
        value, gradient = theirs(x)
        our_value, ours = density_at(x, prior, packed)
        difference.append(our_value - value)
        scale = np.abs(gradient).max()
        np.testing.assert_allclose(ours, gradient, rtol=1e-10, atol=1e-10 * scale)
        assert abs(difference[-1] - difference[0]) < 1e-10 * max(abs(value), 1.0)
    # PyMC rounds its constants to single precision.
    assert abs(difference[0]) < 1e-7


@pytest.mark.parametrize("tasks", ["n_better", "curve"])
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_the_gradient_is_that_of_differences(prior, tasks):
    packed = pack(prior, data_of(prior, TASKS[tasks]))
    for x in points(prior, 3, seed=5):
        ends = [
            density_at(x + sign * 1e-5 * np.eye(x.size)[j], prior, packed)[0]
            for j in range(x.size)
            for sign in (1, -1)
        ]
        numeric = -np.diff(np.reshape(ends, (-1, 2)))[:, 0] / 2e-5
        gradient = density_at(x, prior, packed)[1]
        scale = np.abs(gradient).max()
        np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6 * scale)


@pytest.mark.parametrize("tail", [-1.0, -1 + 5e-5, -1 - 5e-5, -1 + 2e-4, 0.0])
@pytest.mark.parametrize("mu", [-0.5, 2.0])
def test_the_derivative_by_the_tail_where_the_scale_is_nearly_a_logarithm(tail, mu):
    prior = PRIORS[0]
    packed, x = pack(prior, data_of(prior, (N_BETTER,))), points(prior, 1, seed=6)[0]
    place = list(layout(prior).free).index("tail")
    x[0], x[place] = mu, tail

    def value(tail):
        return density_at(np.concatenate([x[:place], tail, x[place + 1 :]]), prior, packed)[0]

    gradient, step = density_at(x, prior, packed)[1], 1e-5
    numeric = (value([tail + step]) - value([tail - step])) / (2 * step)
    assert gradient[place] == pytest.approx(numeric, rel=1e-6, abs=1e-6)


def exact(array):
    return [mpmath.mpf(float(value)) for value in array]


def exact_normal(value, mean, sd):
    return mpmath.log(mpmath.npdf(value, mean, sd))


def exact_student(log_tau, prior):
    n, sd = mpmath.mpf(prior.scale_freedom), mpmath.mpf(prior.scale_log_sd)
    scaled = (log_tau - mpmath.log(mpmath.mpf(prior.scale))) / sd
    constant = mpmath.gamma((n + 1) / 2) / mpmath.gamma(n / 2) / mpmath.sqrt(n * mpmath.pi) / sd
    return mpmath.log(constant) - (n + 1) / 2 * mpmath.log1p(scaled**2 / n)


def exact_log_half_normal(value, sd):
    return mpmath.log(2) + exact_normal(mpmath.exp(value), 0, sd) + value


def exact_prior(prior, x):
    """Log prior density of unconstrained parameters, and log weights on the knots."""
    log, exp, free = mpmath.log, mpmath.exp, exact(x)
    (mu, log_tau), rest = free[:2], free[2:]
    density = exact_normal(mu, prior.location, prior.location_sd)
    density += exact_student(log_tau, prior)
    log_width = log(exp(2 * log_tau) + mpmath.mpf(prior.bandwidth) ** 2 / 2) / 2
    groups = [(mpmath.mpf(1), mpmath.mpf(0), exp(log_width))]
    if prior.has_groups:
        p, q, apart = 1 / (1 + exp(-rest[0])), 1 / (1 + exp(rest[0])), exp(rest[1])
        density += log(p * q) + exact_log_half_normal(rest[1], prior.separation)
        rest, imbalance = rest[2:], 0
        if prior.imbalance > 0:
            imbalance, rest = rest[0], rest[1:]
            density += exact_normal(imbalance, 0, prior.imbalance)
        groups = [
            (p, -q * apart, exp(log_width + imbalance)),
            (q, p * apart, exp(log_width - imbalance)),
        ]
    tail = mpmath.mpf(prior.tail) if prior.has_tail else mpmath.mpf(0)
    if prior.has_tail and prior.tail_sd > 0:
        tail, rest = rest[0], rest[1:]
        density += exact_normal(tail, prior.tail, prior.tail_sd)

    def slope(t):
        return (1 + t) ** tail if t > 0 else mpmath.mpf(1)

    def stretched(t):
        """Integral of the slope from mu to t, in units of the slope at mu."""
        start, end = max(mu, 0), max(t, 0)
        if tail == -1:
            above = log((1 + end) / (1 + start))
        else:
            above = ((1 + end) ** (1 + tail) - (1 + start) ** (1 + tail)) / (1 + tail)
        return (above + min(t, 0) - min(mu, 0)) / slope(mu)

    knots = exact(prior.basis.knots)
    height = [
        log(slope(t) * sum(s * mpmath.npdf(stretched(t), mean, sd) for s, mean, sd in groups))
        for t in knots
    ]
    if prior.deviation > 0:
        density += exact_log_half_normal(rest[0], prior.deviation)
        density += sum(exact_normal(z, 0, 1) for z in rest[1:])
        for j, row in enumerate(prior.deviations()):
            height[j] += exp(rest[0]) * mpmath.fdot(exact(row), rest[1:])
    return density, height


@pytest.mark.parametrize("tasks", ["n_better", "curve"])
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_density_in_arbitrary_precision(prior, tasks):
    data = data_of(prior, TASKS[tasks])
    packed, start = pack(prior, data), layout(prior).start
    counts = None if tasks == "curve" else exact(data.counts * data.precision)
    for x in (start, points(prior, 1, seed=4)[0], start + 1.5 * np.cos(np.arange(start.size))):
        with mpmath.workdps(40):
            expected, height = exact_prior(prior, x)
            weights = [mpmath.exp(value - max(height)) for value in height]
            for j, row in enumerate(data.matrix):
                mean = mpmath.fdot(exact(row), weights) / sum(weights)
                if counts is None:
                    expected += exact_normal(mpmath.mpf(data.whitened[j]), mean, 1)
                elif counts[j]:
                    expected += counts[j] * mpmath.log(mean)
        value, _ = density_at(x, prior, packed)
        assert value == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("prior", [at_night(prior) for prior in PRIORS], ids=str)
def test_expanded_draws_are_those_of_the_pymc_model(prior):
    data = data_of(prior, (N_BETTER,))
    model, names = build_model(prior, data), layout(prior)
    order = [variable.name for variable in model.value_vars]
    assert order == list(names.free)
    outputs = model.unobserved_value_vars
    compute = model.compile_fn(outputs, inputs=model.value_vars, mode="FAST_COMPILE")
    theirs_named = [variable.name for variable in model.unobserved_value_vars]
    for x in points(prior, 5, seed=1):
        expanded = np.empty(x.size + sum(int(np.prod(shape)) for shape in names.derived.values()))
        packed = pack(prior, data)
        expand(filled(x, packed), packed, expanded)
        ours = split(expanded, {**names.free, **names.derived})
        theirs = compute({name: ours[name] for name in order})
        for name, value in zip(theirs_named, theirs, strict=True):
            np.testing.assert_allclose(ours[name], value, rtol=1e-10, atol=1e-100)


def split(values, shapes):
    parts, start = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        parts[name] = values[start : start + size].reshape(shape)
        start += size
    return parts


@pytest.mark.parametrize("decisions", [False, True])
@pytest.mark.parametrize("prior", PRIORS[:4:3], ids=str)
def test_the_coordinates_of_the_sampler_have_the_density_of_the_parameters(prior, decisions):
    data = data_of(prior, (N_BETTER,))
    if decisions:  # right or wrong
        right = data.matrix[0]
        data = BernsteinData(np.array([right, 1 - right]), np.array([30.0, 10.0]))
    packed = pack(prior, data)

    def to_parameters(q):
        every = filled(q, packed)
        x = np.empty(every.size)
        from_moved(every, packed, x)
        return x[layout(prior).places]

    for q in points(prior, 5, seed=2):
        jacobian = approx_fprime(q, to_parameters, 1e-7)
        moved, gradient = density_at(q, prior, packed, moved_log_density)
        value, _ = density_at(to_parameters(q), prior, packed)
        assert moved - value == pytest.approx(np.linalg.slogdet(jacobian).logabsdet, abs=1e-5)

        def value_at(q):
            return density_at(q, prior, packed, moved_log_density)[0]

        numeric = [
            (value_at(q + step) - value_at(q - step)) / 2e-5 for step in 1e-5 * np.eye(q.size)
        ]
        np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


def test_the_first_coordinates_are_the_moments_of_the_two_groups():
    prior = PRIORS[0]
    packed, q = pack(prior, data_of(prior, (N_BETTER,))), points(prior, 1, seed=3)[0]
    x = np.empty(q.size)
    from_moved(q, packed, x)
    share, apart, ratio = 1 / (1 + np.exp(-x[2])), np.exp(x[3]), np.exp(x[4])
    tau = np.exp(x[1])
    means = x[0] + np.array([-(1 - share), share]) * apart
    second = share * (tau * ratio) ** 2 + (1 - share) * (tau / ratio) ** 2
    spread = np.average((means - x[0]) ** 2, weights=[share, 1 - share])
    square = second + spread
    mean = np.average(means, weights=[share, 1 - share])
    growing = np.sqrt((1 + square) / (1 + square / 100))
    assert mean == pytest.approx(prior.location + q[0] * growing)
    standard = np.log(np.sqrt(square) / prior.scale) / prior.scale_log_sd
    assert t.cdf(standard, prior.scale_freedom) == pytest.approx(norm.cdf(q[1]), abs=2e-3)


def test_a_point_far_away_is_a_divergence_and_no_crash():
    prior = PRIORS[0]
    packed = pack(prior, data_of(prior, (N_BETTER,)))
    for sign in (-1, 1):
        q = np.full(layout(prior).start.size, sign * 800.0)
        assert not np.isfinite(moved_log_density(q, packed, np.empty(q.size)))
