//! A kind of model in its dynamic form.

use super::{AnyFitted, Fit, Fitted, Job, Run, Traits, check_missing};
use crate::dataset::{AnyKind, DataKind, Dataset, KindOf};
use crate::params::{self, Params as _};
use gradus_base::{Error, Result};
use gradus_data::{RowBlocks, Titles};
use gradus_file::Reader;
use serde_json::{Map, Value};
use std::path::Path;

/// A kind of model in its dynamic form: what the registry lists.
pub trait Estimator: Send + Sync {
    /// The name of the model: `als`.
    fn name(&self) -> &'static str;
    /// The name of the type in Rust and of the class in other languages: `Als`.
    fn class(&self) -> &'static str;
    /// The family of the model: `factor`.
    fn family(&self) -> &'static str;
    /// First paragraph of its docs, and the rest.
    fn docs(&self) -> (String, String);
    /// The parameters of the model.
    fn specs(&self) -> Vec<params::ParamSpec>;
    /// The kind of training data.
    fn data(&self) -> &'static dyn AnyKind;
    /// Returns the declared properties of the kind of model.
    fn traits(&self) -> Traits;
    /// Fits the model.
    fn fit(
        &self,
        params: &Map<String, Value>,
        data: &dyn Dataset,
        validation: Option<&dyn Dataset>,
        run: &Run<'_>,
    ) -> Result<AnyFitted>;
    /// Fits the model to rows of features that are read once and not kept in memory; `None` for a model that needs them in memory.
    fn fit_rows(
        &self,
        _params: &Map<String, Value>,
        _rows: &mut dyn RowBlocks,
        _run: &Run<'_>,
    ) -> Option<Result<AnyFitted>> {
        None
    }
    /// Whether it reads this file in parts, and need not hold it.
    ///
    /// # Errors
    /// If a parameter or an option is wrong.
    fn takes_parts(
        &self,
        _params: &Map<String, Value>,
        _path: &Path,
        _options: &Map<String, Value>,
    ) -> Result<bool> {
        Ok(false)
    }
    /// Fits the model to a file that is read in parts.
    ///
    /// # Errors
    /// If it has to hold its data; else as [`fit`](Self::fit).
    fn fit_parts(
        &self,
        _params: &Map<String, Value>,
        _path: &Path,
        _options: &Map<String, Value>,
        _run: &Run<'_>,
    ) -> Result<AnyFitted> {
        Err(Error::data(format!("model `{}` holds its data", self.name())))
    }
    /// Fits parameters that differ in the strength of the penalty alone, from strong to weak, in one
    /// go; `None` if this model has no faster way than one fit after another.
    fn fit_path(
        &self,
        _chain: &[Map<String, Value>],
        _data: &dyn Dataset,
        _run: &Run<'_>,
    ) -> Option<Result<Vec<AnyFitted>>> {
        None
    }
    /// Reads a fitted model of this kind.
    fn read(&self, file: &mut Reader) -> Result<AnyFitted>;
}

/// The entry of `P` in the registry.
pub struct Entry<P>(std::marker::PhantomData<fn() -> P>);

impl<P> Entry<P> {
    /// The entry.
    pub const fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<P> Default for Entry<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Fit> Estimator for Entry<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn class(&self) -> &'static str {
        P::CLASS
    }

    fn family(&self) -> &'static str {
        P::FAMILY
    }

    fn docs(&self) -> (String, String) {
        params::docs::<P>()
    }

    fn specs(&self) -> Vec<params::ParamSpec> {
        params::specs::<P>()
    }

    fn data(&self) -> &'static dyn AnyKind {
        const { &KindOf::<P::Data>::new() }
    }

    fn traits(&self) -> Traits {
        P::TRAITS
    }

    fn fit(
        &self,
        params: &Map<String, Value>,
        data: &dyn Dataset,
        validation: Option<&dyn Dataset>,
        run: &Run<'_>,
    ) -> Result<AnyFitted> {
        let typed = |data: &'_ dyn Dataset| -> Result<()> {
            let kind = data.kind();
            if kind == P::Data::NAME {
                return Ok(());
            }
            let (name, needed) = (P::NAME, P::Data::NAME);
            Err(Error::data(format!(
                "model `{name}` learns from {needed}, and the data are {kind}"
            )))
        };
        typed(data)?;
        validation.map_or(Ok(()), typed)?;
        check_missing(P::NAME, &P::TRAITS, data)?;
        validation.map_or(Ok(()), |held_out| check_missing(P::NAME, &P::TRAITS, held_out))?;
        let job = Job {
            validation: validation.map(|held_out| held_out.of_kind::<P::Data>()).transpose()?,
            warm: run.warm,
            observer: run.observer,
            stop: run.stop.clone(),
            checkpoint: run.checkpoint.clone(),
            baselines: true,
        };
        let data = data.of_kind::<P::Data>()?;
        Ok(P::from_record(params)?.fit_job(data, &job)?.into_any())
    }

    fn fit_rows(
        &self,
        params: &Map<String, Value>,
        rows: &mut dyn RowBlocks,
        run: &Run<'_>,
    ) -> Option<Result<AnyFitted>> {
        let params = match P::from_record(params) {
            Ok(params) => params,
            Err(error) => return Some(Err(error)),
        };
        let job = Job { observer: run.observer, stop: run.stop.clone(), ..Job::default() };
        Some(params.fit_rows(rows, &job)?.map(Fitted::into_any))
    }

    fn takes_parts(
        &self,
        params: &Map<String, Value>,
        path: &Path,
        options: &Map<String, Value>,
    ) -> Result<bool> {
        let options = <P::Data as DataKind>::Options::from_record(options)?;
        Ok(P::from_record(params)?.takes_parts() && P::Data::is_in_parts(path, &options))
    }

    fn fit_parts(
        &self,
        params: &Map<String, Value>,
        path: &Path,
        options: &Map<String, Value>,
        run: &Run<'_>,
    ) -> Result<AnyFitted> {
        let options = <P::Data as DataKind>::Options::from_record(options)?;
        let job = Job { observer: run.observer, stop: run.stop.clone(), ..Job::default() };
        let mut parts = |take: &mut dyn FnMut(P::Data) -> Result<bool>| {
            P::Data::read_parts(path, &options, take)
        };
        Ok(P::from_record(params)?.fit_parts(&mut parts, &job)?.into_any())
    }

    fn fit_path(
        &self,
        chain: &[Map<String, Value>],
        data: &dyn Dataset,
        run: &Run<'_>,
    ) -> Option<Result<Vec<AnyFitted>>> {
        let data = data.downcast_ref::<P::Data>()?;
        let chain: Vec<P> =
            chain.iter().map(|one| P::from_record(one).ok()).collect::<Option<_>>()?;
        let job = Job {
            validation: None,
            warm: run.warm,
            observer: run.observer,
            stop: run.stop.clone(),
            checkpoint: None,
            baselines: true,
        };
        let fits = P::fit_path(&chain, data, &job)?;
        Some(fits.map(|fits| fits.into_iter().map(Fitted::into_any).collect()))
    }

    fn read(&self, file: &mut Reader) -> Result<AnyFitted> {
        let fitted = Fitted::<P>::read(file)?.into_any();
        Ok(AnyFitted { titles: Titles::read(file)?, ..fitted })
    }
}
