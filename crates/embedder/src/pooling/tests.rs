//! Modes by hand, modules by hand, cuts and lengths. Agreement with sentence-transformers is in `encoder/tests.rs`.

use super::*;

fn head(modes: &[Mode], include_prompt: bool) -> Head {
    let pooling = Pooling { modes: modes.to_vec(), include_prompt };
    let dimensions = 2 * modes.len();
    Head { pooling, modules: Vec::new(), descriptions: Vec::new(), width: 2, dimensions, cut: false }
}

#[track_caller]
fn check(mode: Mode, rows: &[[f32; 2]], expected: Result<[f32; 2], NoVector>) {
    let vectors = head(&[mode], true).vectors(&rows.concat(), &Spans::of_lengths(&[rows.len()]), 7);
    assert_eq!(vectors, [expected.map(|vector| vector.to_vec())]);
}

/// Before it gets its length.
#[track_caller]
fn check_pooled(modes: &[Mode], n_prompt: usize, rows: &[[f32; 2]], expected: &[f64]) {
    let pooling = Pooling { modes: modes.to_vec(), include_prompt: false };
    assert_eq!(pooling.apply(&rows.concat(), 2, n_prompt).unwrap(), expected);
}

#[test]
fn each_mode_by_hand() {
    let rows = [[3.0, 0.0], [0.0, 4.0], [3.0, 4.0]];
    check(Mode::Mean, &rows, Ok([0.6, 0.8]));
    check(Mode::Cls, &rows, Ok([1.0, 0.0]));
    check(Mode::Max, &rows, Ok([0.6, 0.8]));
    check(Mode::Max, &[[-3.0, -4.0]], Ok([-0.6, -0.8]));
    check_pooled(&[Mode::Mean], 0, &rows, &[2.0, 8.0 / 3.0]);
    check_pooled(&[Mode::MeanSqrtLen], 0, &[[1.0, 2.0]; 4], &[2.0, 4.0]);
    check_pooled(&[Mode::WeightedMean], 0, &rows, &[2.0, 20.0 / 6.0]);
    check_pooled(&[Mode::LastToken], 0, &rows, &[3.0, 4.0]);
}

#[test]
fn modes_are_concatenated_in_their_order() {
    let rows = [[3.0, 0.0], [0.0, 4.0]];
    check_pooled(&[Mode::Max, Mode::Cls, Mode::Max], 0, &rows, &[3.0, 4.0, 3.0, 0.0, 3.0, 4.0]);
    let vectors = head(&[Mode::Mean, Mode::LastToken], true).vectors(&rows.concat(), &Spans::of_lengths(&[1, 1]), 0);
    let half = 0.5f64.sqrt() as f32;
    assert_eq!(vectors, [Ok(vec![half, 0.0, half, 0.0]), Ok(vec![0.0, half, 0.0, half])]);
}

#[test]
fn a_prompt_is_left_out_where_asked() {
    let rows = [[9.0, 9.0], [8.0, 8.0], [3.0, 0.0], [0.0, 4.0]];
    check_pooled(&[Mode::Mean], 2, &rows, &[1.5, 2.0]);
    check_pooled(&[Mode::Cls], 2, &rows, &[3.0, 0.0]);
    check_pooled(&[Mode::Max], 2, &rows, &[3.0, 4.0]);
    check_pooled(&[Mode::WeightedMean], 2, &rows, &[9.0 / 7.0, 16.0 / 7.0]); // places 3 and 4
    let nothing_left = head(&[Mode::Mean], false).vectors(&rows.concat(), &Spans::of_lengths(&[1, 3]), 2);
    assert_eq!(nothing_left[0], Err("has no tokens behind its prompt"));
    assert!(nothing_left[1].is_ok());
}

#[test]
fn a_vector_without_direction_is_refused() {
    for (_, mode) in Mode::NAMES {
        check(mode, &[[0.0, 0.0]], Err("has length zero"));
        check(mode, &[[f32::INFINITY, 1.0]], Err("is not finite"));
        check(mode, &[[f32::NAN, 1.0]], Err("is not finite"));
    }
    for mode in [Mode::Max, Mode::Mean, Mode::MeanSqrtLen, Mode::WeightedMean] {
        check(mode, &[[1.0, 1.0], [f32::NAN, 1.0], [2.0, 2.0]], Err("is not finite"));
    }
}

#[test]
fn vectors_are_cut_before_they_get_their_length() {
    let mut head = head(&[Mode::Mean, Mode::Max], true);
    head.dimensions = 2;
    assert_eq!(head.vectors(&[3.0, 4.0], &Spans::of_lengths(&[1]), 0), [Ok(vec![0.6, 0.8])]);
}

#[test]
fn a_single_mode_is_described_by_its_name_alone() {
    let describe = |modes: &[Mode], include_prompt| {
        serde_json::to_string(&Pooling { modes: modes.to_vec(), include_prompt }).unwrap()
    };
    assert_eq!(describe(&[Mode::Mean], true), r#""Mean""#);
    assert_eq!(describe(&[Mode::Mean], false), r#"[["Mean"],false]"#);
    assert_eq!(describe(&[Mode::Mean, Mode::Max], true), r#"[["Mean","Max"],true]"#);
}

#[test]
fn activations_by_hand() {
    let expected: [(&str, [f64; 3]); 6] = [
        ("Identity", [-1.0, 0.0, 2.0]),
        ("Tanh", [-0.761_594_155_955_765, 0.0, 0.964_027_580_075_817]),
        ("ReLU", [0.0, 0.0, 2.0]),
        ("GELU", [-0.158_655_253_931_457, 0.0, 1.954_499_736_103_642]),
        ("Sigmoid", [0.268_941_421_369_995, 0.5, 0.880_797_077_977_882]),
        ("SiLU", [-0.268_941_421_369_995, 0.0, 1.761_594_155_955_765]),
    ];
    for (name, expected) in expected {
        let activation = ModuleActivation::from_class(&format!("torch.nn.modules.activation.{name}")).unwrap();
        let mut values = [-1.0, 0.0, 2.0];
        activation.apply(&mut values);
        assert!(values.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{name}: {values:?}");
        let mut broken = [f64::NAN];
        activation.apply(&mut broken);
        assert!(broken[0].is_nan(), "{name}");
    }
    for class in ["torch.nn.modules.activation.Mish", "torch.Tanh", "os.system", "Tanh", "torch.nn.functional.tanh"] {
        assert_eq!(ModuleActivation::from_class(class), None, "{class}");
    }
}
