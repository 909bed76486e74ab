//! stand-in
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half { First, Second }
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation { None, Gelu, GeluTanh, Relu, Silu, Tanh }
impl Activation { pub(crate) const ALL: [Self; 6] = [Self::None, Self::Gelu, Self::GeluTanh, Self::Relu, Self::Silu, Self::Tanh]; }
