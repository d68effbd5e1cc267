//! A number that tells two data sets apart.

use super::{Entity, Ids, Ratings};

/// A running 64-bit hash of words: quick, stable across builds, not meant to withstand malice.
struct Hash(u64);

impl Hash {
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    fn ids(&mut self, ids: &Ids) {
        match ids {
            Ids::Int(ids) => self.bytes(bytemuck::cast_slice(ids)),
            Ids::Text(ids) => {
                let (text, offsets) = ids.parts();
                self.bytes(text.as_bytes());
                self.bytes(bytemuck::cast_slice(offsets));
            }
        }
    }
}

impl Ratings {
    /// A number that differs between data sets that differ (but for chance): a checkpoint is only
    /// taken up with the data it was made from. Times do not count: no fit looks at them.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Hash(self.len() as u64);
        hash.ids(self.users());
        hash.ids(self.items());
        hash.bytes(bytemuck::cast_slice(self.by_user().indptr()));
        hash.bytes(bytemuck::cast_slice(self.by_user().indices()));
        hash.bytes(bytemuck::cast_slice(self.by_user().values()));
        hash.bytes(bytemuck::cast_slice(self.weights_by_user().unwrap_or_default()));
        for features in Entity::ALL.iter().filter_map(|&of| self.features(of)) {
            hash.bytes(bytemuck::cast_slice(features.matrix().indptr()));
            hash.bytes(bytemuck::cast_slice(features.matrix().indices()));
            hash.bytes(bytemuck::cast_slice(features.matrix().values()));
            features.known().iter().for_each(|&known| hash.word(u64::from(known)));
            features.encoder().names().iter().for_each(|name| hash.bytes(name.as_bytes()));
        }
        hash.0
    }
}
