//! FNV-1a: a short hash that is the same on every platform and with every compiler.

/// A hash under way.
#[derive(Debug)]
pub struct Fnv(u64);

// === impl Fnv ===

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds one field; its length is part of it, so that fields cannot run into each other.
    pub fn write(&mut self, field: &[u8]) {
        let length = (field.len() as u64).to_le_bytes();
        for byte in length.iter().chain(field) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// The hash of all fields so far.
    pub fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_keeps_fields_apart() {
        let hash = |fields: &[&str]| {
            let mut hash = Fnv::default();
            fields.iter().for_each(|field| hash.write(field.as_bytes()));
            hash.finish()
        };
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
    }
}
