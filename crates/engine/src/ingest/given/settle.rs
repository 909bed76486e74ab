//! Settings: what the rows are, and the configuration of the collection that holds them.

use std::collections::HashSet;

use cento_collection::format::config::{
    CHUNKER_VERSION, ChunkTokens, CollectionConfig, Distance, GivenVectors, NO_MODEL, PRECISION, Pooling,
};
use cento_collection::format::manifest::Manifest;
use cento_corpus::{ChunkSize, HeaderStyle};
use cento_vector::{EXPONENTS, Lift, Scalar, UNIT_TOLERANCE};

use super::options::{GivenOptions, Lengths};
use super::rows::{Given, id_hash, length};
use crate::error::{Error, Result};

/// The findings of the first reading.
pub(super) struct Examined {
    n_columns: usize,
    has_texts: bool,
    /// The order that the file says its vectors were made for.
    distance: Option<String>,
    /// The greatest length, and the row that has it.
    longest: (f64, u64),
    /// The first row that is not of unit length, and its length.
    not_unit: Option<(u64, f64)>,
}

impl Examined {
    /// Reads the files to their end.
    pub(super) fn new(options: &GivenOptions) -> Result<Self> {
        let mut given = Given::open(options)?;
        let mut examined = Self {
            n_columns: given.matrix.n_columns,
            has_texts: given.has_texts(),
            distance: given.matrix.distance().map(str::to_owned),
            longest: (0.0, 0),
            not_unit: None,
        };
        if given.matrix.n_rows() == 0 {
            return Err(Error::NothingToIndex { reason: format!("{} has no row", options.vectors.display()) });
        }
        let (mut ids, mut row) = (HashSet::new(), 0);
        while let Some(one) = given.next()? {
            let length = length(&one.vector);
            if !length.is_finite() {
                return Err(given.refuse(&format!("row {row} has a number that is not finite")));
            }
            if length > examined.longest.0 {
                examined.longest = (length, row);
            }
            if (length - 1.0).abs() > UNIT_TOLERANCE && examined.not_unit.is_none() {
                examined.not_unit = Some((row, length));
            }
            if options.lengths == Lengths::Normalized && length == 0.0 {
                return Err(given.refuse(&format!("row {row} is a vector of zeros, which has no direction")));
            }
            if !ids.insert(id_hash(&one.document.id)) {
                return Err(given.refuse(&format!("row {row} has the id {:?} of another row", one.document.id)));
            }
            row += 1;
        }
        Ok(examined)
    }

    /// The configuration the rows will have: the collection's own, or a new one; a request that differs is refused.
    pub(super) fn settle(&self, known: Option<&Manifest>, options: &GivenOptions) -> Result<CollectionConfig> {
        let refuse = |reason: String| Error::Vectors { path: options.vectors.clone(), reason };
        let known = known.map(|manifest| &manifest.config);
        let known_given = match known.map(|config| config.given) {
            Some(None) => {
                let reason =
                    "the collection has an encoder, whose vectors these are not; give them a collection of their own";
                return Err(refuse(reason.to_owned()));
            }
            Some(given) => given,
            None => None,
        };
        let distance = match options.distance.or(known_given.map(|given| given.distance)) {
            Some(distance) => distance,
            None => self.distance_named().map_err(refuse)?,
        };
        if let (Distance::Cosine, Lengths::Kept, Some((row, length))) = (distance, options.lengths, self.not_unit) {
            return Err(refuse(format!(
                "row {row} has length {length}, and the cosine is of vectors of length 1: have them normalized, or rank \
                 by the inner product or the Euclidean distance"
            )));
        }
        let norm_exponent = self.norm_exponent(distance, known_given, options)?;
        let given = GivenVectors { dimensions: self.n_columns, distance, norm_exponent, texts: self.has_texts };
        let Some((config, old)) = known.zip(known_given) else { return Ok(new_config(given, options)) };
        let differs = |setting, collection: String, requested: String| match collection == requested {
            true => Ok(()),
            false => Err(Error::Mismatch { setting, collection, requested }),
        };
        let texts = |given: &GivenVectors| if given.texts { "texts" } else { "no texts" }.to_owned();
        differs("dimensions", old.dimensions.to_string(), given.dimensions.to_string())?;
        differs("distance", old.distance.to_string(), distance.to_string())?;
        differs("texts", texts(&old), texts(&given))?;
        if let Some(language) = options.language {
            differs("language", config.language.clone(), language.to_string())?;
        }
        if let Some(scalar) = options.scalar {
            differs("vectors", config.vectors.clone(), scalar_name(scalar).to_owned())?;
        }
        Ok(config.clone())
    }

    /// The order that the file names; the default if it names none.
    fn distance_named(&self) -> Result<Distance, String> {
        match self.distance.as_deref() {
            None => Ok(Distance::default()),
            Some("angular") => Ok(Distance::Cosine),
            Some("euclidean") => Ok(Distance::Euclidean),
            Some("dot" | "ip") => Ok(Distance::InnerProduct),
            Some(other) => Err(format!("is made for the distance {other:?}, which is not computed; choose another")),
        }
    }

    /// The bound of all lengths: the collection's own, or the least power of two for these.
    fn norm_exponent(&self, distance: Distance, known: Option<GivenVectors>, options: &GivenOptions) -> Result<i32> {
        let (longest, row) = match options.lengths {
            Lengths::Kept => self.longest,
            Lengths::Normalized => (1.0, 0),
        };
        let refuse = |reason: String| Error::Vectors { path: options.vectors.clone(), reason };
        if distance == Distance::Cosine {
            return match options.norm_max {
                Some(_) => Err(refuse("a bound of lengths means nothing to the cosine".to_owned())),
                None => Ok(0),
            };
        }
        let beyond = |exponent: i32| longest > 2_f64.powi(exponent);
        if let Some(known) = known.filter(|known| known.distance == distance) {
            let bound = 2_f64.powi(known.norm_exponent);
            if let Some(wanted) = options.norm_max.filter(|wanted| !(*wanted <= bound)) {
                let (collection, requested) = (bound.to_string(), wanted.to_string());
                return Err(Error::Mismatch { setting: "norm_max", collection, requested });
            }
            return match beyond(known.norm_exponent) {
                true => Err(refuse(format!(
                    "row {row} has length {longest}, and the collection was made for lengths to {bound}: index all \
                     vectors into a new one, with room for the longest"
                ))),
                false => Ok(known.norm_exponent),
            };
        }
        let wanted = options.norm_max.unwrap_or(longest);
        if !(wanted >= longest) {
            return Err(refuse(format!(
                "row {row} has length {longest}, more than the greatest that was named, {wanted}"
            )));
        }
        Lift::exponent(wanted).ok_or_else(|| {
            let most = 2_f64.powi(*EXPONENTS.end());
            let row = if longest < wanted { String::new() } else { format!("row {row}: ") };
            refuse(format!("{row}a length of {wanted} is too long; lengths to {most:e} can be"))
        })
    }
}

fn new_config(given: GivenVectors, options: &GivenOptions) -> CollectionConfig {
    CollectionConfig {
        model: NO_MODEL.to_owned(),
        model_fingerprint: NO_MODEL.to_owned(),
        dimensions: given.dimensions + given.lift().added(),
        chunk_tokens: ChunkTokens(ChunkSize::Document).to_string(),
        chunker_version: CHUNKER_VERSION,
        header: HeaderStyle::None.to_string(),
        language: options.language.unwrap_or_default().to_string(),
        vectors: scalar_name(options.scalar.unwrap_or(Scalar::F32)).to_owned(),
        precision: PRECISION.to_owned(),
        pooling: Pooling::Plain,
        late: None,
        given: Some(given),
        endpoint: None,
        context: None,
        prompt: None,
    }
}

fn scalar_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::F32 => "f32",
        Scalar::F16 => "f16",
    }
}
