//! Names of choices: one list tells the names, their order and how they are read.

/// Gives an enum `ALL`, `name`, `Display` and `FromStr` from one table of its variants and their names.
macro_rules! named {
    ($choice:ident, $what:literal: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $choice {
            /// Every choice: the default, then the others.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name, as commands and traces write it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl std::str::FromStr for $choice {
            type Err = $crate::Error;

            fn from_str(name: &str) -> $crate::Result<Self> {
                let named = Self::ALL.into_iter().find(|choice| choice.name() == name);
                named.ok_or_else(|| $crate::Error::unknown($what, name, &[$($name),+]))
            }
        }

        impl std::fmt::Display for $choice {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

pub(crate) use named;
