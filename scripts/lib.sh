# What the scripts share: where the project is, and what must be there before anything is built.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

need() { # need COMMAND "what it is for" "how to get it"
  command -v "$1" >/dev/null 2>&1 && return
  echo "missing: $1 ($2)" >&2
  echo "  get it: $3" >&2
  missing=1
}

check_tools() {
  missing=0
  need cargo "the Rust toolchain" "https://rustup.rs, or your distribution's rustup package"
  need cc "a C compiler, for a few libraries" "apt-get install build-essential, dnf install gcc, or xcode-select --install"
  [ "$missing" = 0 ] || exit 2
  local have want
  want=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
  have=$(rustc --version | awk '{print $2}')
  if [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n 1)" != "$want" ]; then
    echo "rustc $have is too old, Cento needs $want" >&2
    echo "  get it: rustup update stable" >&2
    exit 2
  fi
}

# A build that cannot reach the crate registry should say that, not leave the reader with cargo's last line.
build() {
  if ! cargo build --manifest-path "$root/Cargo.toml" "$@"; then
    echo "the build failed; if cargo could not download crates, this machine needs the network once (or a mirror in ~/.cargo/config.toml)" >&2
    exit 2
  fi
}

cento() { "${CARGO_TARGET_DIR:-$root/target}/debug/cento" "$@"; }
