//! Every model of gradus. A new one joins with one line here, and has the command line, saving,
//! loading, the Python class and the conformance suite from then on.

use gradus_audit::fairness::{FairFeatures, FairPenalty, FairReduction, FairThresholds};
use gradus_base::Result;
use gradus_core::estimator::{AnyFitted, Estimator};
use gradus_core::registry::Registry;
use gradus_factor::{
    Als, Bayes, Bias, Bpr, Ccd, Ease, Gd, Ials, Mean, Neighbours, NmfRatings, Popular, PureSvd,
    Sgd, Slim, SoftImpute, Spectral, Svdpp, Svp, Svt,
};
use gradus_latent::{Gmm, KMeans, Lda, LinearAutoencoder, Nmf, Pca, Plsa};
use gradus_linear::{Constant, ElasticNet, Lasso, Linear, Logistic, Majority, Ridge, Svm, Svr};
use gradus_nn::{
    Autoencoder, Cnn, Diffusion, Gan, Lm, Mlp, MlpRegressor, PixelCnn, Seq2Seq, TextClassifier,
    Vae, Vit,
};
use gradus_text::{
    Cbow, Counts, Doc2Vec, FastText, Glove, Ppmi, Sif, Skipgram, Tfidf, open_fasttext,
};
use std::path::Path;
use std::sync::LazyLock;

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    Registry::new()
        .with::<Als>()
        .with::<Svdpp>()
        .with::<Bayes>()
        .with::<Sgd>()
        .with::<Ccd>()
        .with::<Gd>()
        .with::<NmfRatings>()
        .with::<SoftImpute>()
        .with::<Svp>()
        .with::<Svt>()
        .with::<Ials>()
        .with::<Bpr>()
        .with::<PureSvd>()
        .with::<Ease>()
        .with::<Slim>()
        .with::<Spectral>()
        .with::<Mean>()
        .with::<Bias>()
        .with::<Popular>()
        .with::<Neighbours>()
        .with::<Linear>()
        .with::<Ridge>()
        .with::<Lasso>()
        .with::<ElasticNet>()
        .with::<Logistic>()
        .with::<Svm>()
        .with::<Svr>()
        .with::<Mlp>()
        .with::<Autoencoder>()
        .with::<Vae>()
        .with::<PixelCnn>()
        .with::<MlpRegressor>()
        .with::<Gan>()
        .with::<Diffusion>()
        .with::<Cnn>()
        .with::<Vit>()
        .with::<Lm>()
        .with::<TextClassifier>()
        .with::<Seq2Seq>()
        .with::<FairReduction>()
        .with::<FairPenalty>()
        .with::<FairThresholds>()
        .with::<FairFeatures>()
        .with::<Constant>()
        .with::<Majority>()
        .with::<KMeans>()
        .with::<Nmf>()
        .with::<Counts>()
        .with::<Tfidf>()
        .with::<Ppmi>()
        .with::<Glove>()
        .with::<Sif>()
        .with::<Doc2Vec>()
        .with::<Skipgram>()
        .with::<Cbow>()
        .with::<FastText>()
        .with::<Pca>()
        .with::<LinearAutoencoder>()
        .with::<Gmm>()
        .with::<Lda>()
        .with::<Plsa>()
        .with_files(open_fasttext)
});

/// Every model of gradus; a program may add its own to a clone.
pub fn registry() -> &'static Registry {
    &REGISTRY
}

/// Every model of gradus, by name.
pub fn models() -> &'static [&'static dyn Estimator] {
    REGISTRY.models()
}

/// The model of this name.
///
/// # Errors
/// If there is none; the message lists those there are.
pub fn find(name: &str) -> Result<&'static dyn Estimator> {
    REGISTRY.find(name)
}

/// Loads a model file of any kind.
///
/// # Errors
/// If the file is broken, a checkpoint, or of a kind this build does not know.
pub fn load(path: impl AsRef<Path>) -> Result<AnyFitted> {
    REGISTRY.load(path)
}

/// Reads a model of any kind from the bytes of its file.
///
/// # Errors
/// As [`load`].
pub fn from_bytes(bytes: Vec<u8>) -> Result<AnyFitted> {
    REGISTRY.from_bytes(bytes)
}
