//! The device played by the host: kernels compiled as C++ for the CPU, launched as on a GPU, with tensors in main
//! memory.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use candle_core::Error;

use super::launch::Grid;

thread_local! {
    /// Whether launches on this thread are emulated, and in which order the threads of a block run.
    static ORDER: Cell<Option<Order>> = const { Cell::new(None) };
}

/// In which order the threads of a block run between two barriers: a result that depends on it lacks a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Forwards,
    Backwards,
}

pub(crate) fn is_on() -> bool {
    ORDER.get().is_some()
}

/// Runs `test` with the device emulated, once in each order. Without a C++ compiler it does not run, and says so.
pub(crate) fn with(test: impl Fn()) {
    if let Err(reason) = &*LIBRARY {
        eprintln!("skipped: the kernels cannot be emulated: {reason}");
        return;
    }
    for order in [Order::Forwards, Order::Backwards] {
        ORDER.set(Some(order));
        test();
        ORDER.set(None);
    }
}

type Emulate = unsafe extern "C" fn(*const c_char, *const u32, u32, u32, *const c_void, c_int) -> *const c_char;

static LIBRARY: LazyLock<Result<Emulate, String>> = LazyLock::new(|| open(&build()?));

pub(super) fn launch<A: Copy>(name: &str, grid: Grid, arguments: &A) -> Result<(), Error> {
    let emulate = LIBRARY.as_ref().map_err(|reason| Error::Msg(reason.clone()))?;
    let kernel = CString::new(name).expect("kernels have plain names");
    let blocks = grid.blocks.map(|blocks| blocks as u32);
    let backwards = c_int::from(ORDER.get() == Some(Order::Backwards));
    let arguments = std::ptr::from_ref(arguments).cast();
    #[expect(
        unsafe_code,
        reason = "the library was built from the sources beside this file; `launch` says what must hold"
    )]
    let wrong = unsafe {
        let wrong = emulate(
            kernel.as_ptr(),
            blocks.as_ptr(),
            grid.threads as u32,
            grid.shared_bytes as u32,
            arguments,
            backwards,
        );
        (!wrong.is_null()).then(|| CStr::from_ptr(wrong).to_string_lossy().into_owned())
    };
    wrong.map_or(Ok(()), |reason| Err(Error::Msg(format!("{name}: {reason}"))))
}

/// The folder with the sources of the kernels.
pub(super) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kernels/cuda")
}

/// Compiles the kernels for the host; once for each state of the sources.
fn build() -> Result<PathBuf, String> {
    let (sources, mut hasher) = (sources(), blake3::Hasher::new());
    for folder in [sources.clone(), sources.join("emulation")] {
        let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.is_file()) {
            hasher.update(&fs::read(file).unwrap());
        }
    }
    let beside = std::env::current_exe().map_err(|error| format!("the test's own program: {error}"))?;
    let library = beside.with_file_name(format!("emulation-{}.so", &hasher.finalize().to_hex()[..16]));
    if library.exists() {
        return Ok(library);
    }
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let unfinished = library.with_extension(format!("{}.part", std::process::id()));
    let output = Command::new(&compiler)
        .args(["-std=c++20", "-O1", "-shared", "-fPIC", "-DCENTO_EMULATED", "-o"])
        .args([&unfinished, &sources.join("emulation/emulation.cpp")])
        .arg("-I")
        .arg(sources.join("emulation"))
        .output()
        .map_err(|error| format!("{compiler}: {error} (CXX names another C++ compiler)"))?;
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    fs::rename(&unfinished, &library).unwrap(); // whole or not at all: tests run side by side
    Ok(library)
}

fn open(library: &Path) -> Result<Emulate, String> {
    #[expect(unsafe_code, reason = "declared as in the C library that every program here is linked with")]
    unsafe extern "C" {
        fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    const NOW: c_int = 2;
    let path = CString::new(library.to_string_lossy().as_bytes()).expect("paths have no zeros");
    #[expect(
        unsafe_code,
        reason = "the library was built from the sources beside this file, with this one function to call"
    )]
    unsafe {
        let opened = dlopen(path.as_ptr(), NOW);
        assert!(!opened.is_null(), "{} cannot be opened", library.display());
        let found = dlsym(opened, c"emulate".as_ptr());
        assert!(!found.is_null(), "{} has no function `emulate`", library.display());
        Ok(std::mem::transmute::<*mut c_void, Emulate>(found))
    }
}
