//! What a paired comparison must hold, by hand and against scipy.

use proptest::prelude::*;

use super::*;

const SMALL: Bootstrap = Bootstrap { n_resamples: 500, seed: 7, confidence: 0.9 };

#[track_caller]
fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-12, "{value}, not {expected}");
}

#[test]
fn figures_of_a_worked_example() {
    // Differences 0.1, 0.3, -0.1, 0.1: mean 0.1, squares 0 + 0.04 + 0.04 + 0, sd = sqrt(0.08 / 3), t = 0.1 / (sd / 2).
    let paired = paired(&[0.5, 0.2, 0.4, 0.0], &[0.6, 0.5, 0.3, 0.1], &Bootstrap::default()).unwrap();
    let deviation = (0.08_f64 / 3.0).sqrt();
    assert_eq!((paired.n, paired.wins, paired.ties, paired.losses), (4, 3, 0, 1));
    near(paired.mean_a, 1.1 / 4.0);
    near(paired.mean_b, 1.5 / 4.0);
    near(paired.difference, 0.1);
    near(paired.cohens_d.unwrap(), 0.1 / deviation);
    near(paired.t.unwrap(), 0.2 / deviation);
    // scipy.stats.ttest_rel([.6, .5, .3, .1], [.5, .2, .4, 0]).pvalue
    assert!((paired.p_t.unwrap() - 0.308_068_009_250_357_2).abs() < 1e-10, "{paired:?}");
    assert!(paired.low < paired.difference && paired.difference < paired.high, "{paired:?}");
}

#[test]
fn the_bootstrap_agrees_with_every_resample_that_there_is() {
    // Three differences make 27 equally likely resamples.
    let differences = [0.3, 0.2, -0.2];
    let mean = differences.iter().sum::<f64>() / 3.0;
    let all = (0..27).map(|n| (differences[n % 3] + differences[n / 3 % 3] + differences[n / 9]) / 3.0);
    let exact = all.filter(|resampled| (resampled - mean).abs() >= mean.abs() - 1e-12).count() as f64 / 27.0;
    let bootstrap = Bootstrap { n_resamples: 200_000, ..Bootstrap::default() };
    let sampled = paired(&[0.0; 3], &differences, &bootstrap).unwrap();
    // Four standard errors of a share from 200,000 draws.
    assert!((sampled.p_bootstrap - exact).abs() < 0.0045, "{} and {exact}", sampled.p_bootstrap);
    near(sampled.low, -0.2);
    near(sampled.high, 0.3);
}

#[test]
fn without_a_difference_nothing_is_significant() {
    let paired = paired(&[0.5, 0.0, 1.0], &[0.5, 0.0, 1.0], &SMALL).unwrap();
    assert_eq!((paired.p_bootstrap, paired.p_t, paired.t, paired.cohens_d), (1.0, Some(1.0), Some(0.0), Some(0.0)));
    assert_eq!((paired.low, paired.difference, paired.high, paired.ties), (0.0, 0.0, 0.0, 3));
}

#[test]
fn a_difference_without_variation_has_no_t() {
    let paired = paired(&[0.1, 0.2, 0.3], &[0.2, 0.3, 0.4], &SMALL).unwrap();
    assert_eq!((paired.t, paired.p_t, paired.cohens_d), (None, None, None));
    assert_eq!(paired.p_bootstrap, 1.0 / 501.0);
}

#[test]
fn a_single_pair_says_nothing_of_chance() {
    for b in [0.9, 0.4] {
        let paired = paired(&[0.4], &[b], &SMALL).unwrap();
        assert_eq!((paired.p_bootstrap, paired.t, paired.p_t), (1.0, None, None));
        assert_eq!((paired.low, paired.high), (paired.difference, paired.difference));
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let told = |a: &[f64], b: &[f64], bootstrap: Bootstrap| paired(a, b, &bootstrap).unwrap_err().to_string();
    assert!(told(&[], &[], SMALL).contains("no figures"));
    assert!(told(&[1.0], &[1.0, 2.0], SMALL).contains("one side has 1 figures, the other 2"));
    assert!(told(&[1.0, 2.0], &[1.0, f64::NAN], SMALL).contains("figure 2 of the second side"));
    assert!(told(&[-1e300], &[1.0], SMALL).contains("figure 1 of the first side is not a number up to 1e100"));
    assert!(told(&[1.0], &[1.0], Bootstrap { n_resamples: 0, ..SMALL }).contains("0 resamples"));
    assert!(told(&[1.0], &[1.0], Bootstrap { confidence: 1.0, ..SMALL }).contains("confidence of 1"));
    assert!(told(&[1.0], &[1.0], Bootstrap { confidence: f64::NAN, ..SMALL }).contains("confidence of NaN"));
}

#[test]
fn the_same_seed_gives_the_same_numbers_for_good() {
    let a: Vec<f64> = (0..50).map(|n| f64::from(n % 7) / 8.0).collect();
    let b: Vec<f64> = (0..50).map(|n| f64::from(n % 5) / 4.0).collect();
    let paired = paired(&a, &b, &Bootstrap::default()).unwrap();
    assert_eq!((paired.low, paired.high, paired.p_bootstrap), FOR_GOOD);
}

const FOR_GOOD: (f64, f64, f64) = (0.01, 0.2525624999999991, 0.033396660333966606);

fn figures() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    prop::collection::vec((0.0..1.0, 0.0..1.0), 1..30).prop_map(|pairs| pairs.into_iter().unzip())
}

proptest! {
    #[test]
    fn swapping_the_sides_turns_every_sign((a, b) in figures()) {
        let (forth, back) = (paired(&a, &b, &SMALL).unwrap(), paired(&b, &a, &SMALL).unwrap());
        prop_assert_eq!((forth.wins, forth.losses), (back.losses, back.wins));
        prop_assert_eq!(forth.p_bootstrap, back.p_bootstrap);
        prop_assert_eq!(forth.p_t, back.p_t);
        prop_assert!((forth.low + back.high).abs() < 1e-12 && (forth.difference + back.difference).abs() < 1e-12);
    }

    #[test]
    fn every_number_is_in_its_range((a, b) in figures()) {
        let paired = paired(&a, &b, &SMALL).unwrap();
        prop_assert!(paired.low <= paired.high);
        prop_assert!(paired.p_bootstrap > 0.0 && paired.p_bootstrap <= 1.0);
        prop_assert!(paired.p_t.is_none_or(|p| (0.0..=1.0).contains(&p)));
        prop_assert!(paired.t.is_none_or(f64::is_finite));
        prop_assert_eq!(paired.wins + paired.ties + paired.losses, paired.n);
    }
}
