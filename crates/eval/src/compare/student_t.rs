//! Student's t distribution: how likely a t as far from 0 is by chance.
//!
//! Source: `p = I_x(nu / 2, 1 / 2)` at `x = nu / (nu + t^2)`; the regularised incomplete beta function I is statrs's.
//! Range: `[0, 1]`, to 1e-11 of itself up to 1,000 degrees of freedom, to 1e-9 up to 100,000.

use statrs::function::beta::beta_reg;

/// The probability of a t at least as far from 0, with `nu` degrees of freedom, at least 1; the square of t is finite.
pub(super) fn two_sided(t: f64, nu: f64) -> f64 {
    let (a, b) = (nu / 2.0, 0.5);
    let (x, rest) = (nu / (nu + t * t), t * t / (nu + t * t));
    if x < (a + 1.0) / (a + b + 2.0) {
        beta_reg(a, b, x)
    } else {
        1.0 - beta_reg(b, a, rest) // `1 - x` would lose the digits of a small t
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(t, nu, 2 * scipy.stats.t.sf(t, nu))` of scipy 1.17.1. Not for t near 0, where scipy loses half of its digits.
    #[rustfmt::skip]
    const SCIPY: [(f64, f64, f64); 40] = [
        (0.1, 1.0, 0.936548965138893),
        (0.5, 1.0, 0.7048327646991335),
        (2.0, 1.0, 0.2951672353008665),
        (5.0, 1.0, 0.1256659163780024),
        (30.0, 1.0, 0.02121280481107085),
        (0.1, 2.0, 0.9294654384141402),
        (0.5, 2.0, 0.6666666666666667),
        (2.0, 2.0, 0.18350341907227397),
        (5.0, 2.0, 0.037749551350623724),
        (30.0, 2.0, 0.001109262681959659),
        (0.1, 5.0, 0.9242301411546604),
        (0.5, 5.0, 0.6382988716409291),
        (2.0, 5.0, 0.10193947882985835),
        (5.0, 5.0, 0.004104715980053323),
        (30.0, 5.0, 7.718648620496053e-07),
        (0.1, 10.0, 0.9223207185644082),
        (0.5, 10.0, 0.627893605742973),
        (2.0, 10.0, 0.07338803477074037),
        (5.0, 10.0, 0.0005373336027564527),
        (30.0, 10.0, 3.961792342031325e-11),
        (0.1, 49.0, 0.9207523525851034),
        (0.5, 49.0, 0.6193131862101314),
        (2.0, 49.0, 0.05105914825741809),
        (5.0, 49.0, 7.736116446289065e-06),
        (30.0, 49.0, 3.4076701064983316e-33),
        (0.1, 299.0, 0.9204113409349043),
        (0.5, 299.0, 0.6174428478195647),
        (2.0, 299.0, 0.04640453988722304),
        (5.0, 299.0, 9.78569098969785e-07),
        (30.0, 299.0, 3.588611344061961e-92),
        (0.1, 6979.0, 0.9203471977402662),
        (0.5, 6979.0, 0.6170908415980918),
        (2.0, 6979.0, 0.045538947546810246),
        (5.0, 6979.0, 5.872853120866014e-07),
        (30.0, 6979.0, 4.276825759751506e-186),
        (0.1, 100000.0, 0.9203445259067263),
        (0.5, 100000.0, 0.6170761776544179),
        (2.0, 100000.0, 0.04550296345750651),
        (5.0, 100000.0, 5.742701678641679e-07),
        (30.0, 100000.0, 7.37853687222276e-197),
    ];

    #[test]
    fn p_is_that_of_scipy() {
        for (t, nu, expected) in SCIPY {
            for p in [two_sided(t, nu), two_sided(-t, nu)] {
                assert!((p / expected - 1.0).abs() < 1e-10, "t {t}, nu {nu}: {p}, not {expected}");
            }
        }
    }

    #[test]
    fn p_is_that_of_the_closed_forms_for_one_and_two_degrees_of_freedom() {
        for t in [1e-9, 1e-8, 1e-4, 0.7, 3.0, 1e6] {
            let cauchy = 1.0 - 2.0 / std::f64::consts::PI * f64::atan(t);
            assert!((two_sided(t, 1.0) - cauchy).abs() < 1e-15 + 1e-13 * cauchy, "{t}");
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((two_sided(t, 2.0) - two).abs() < 1e-15 + 1e-13 * two, "{t}");
        }
    }

    #[test]
    fn p_goes_from_1_at_0_down_to_0() {
        assert_eq!(two_sided(0.0, 7.0), 1.0);
        let ps: Vec<f64> = (0..400).map(|step| two_sided(f64::from(step) * 0.05, 7.0)).collect();
        assert!(ps.windows(2).all(|pair| pair[0] > pair[1] && pair[1] > 0.0), "{ps:?}");
        assert_eq!(two_sided(1e150, 50.0), 0.0);
    }
}
