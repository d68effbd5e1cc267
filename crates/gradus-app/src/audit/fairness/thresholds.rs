//! Thresholds for each group around a fitted model.

use super::{FairnessRequest, groups_of, read};
use crate::App;
use gradus::audit::fairness::{FairThresholds, GroupedSamples};
use gradus_base::{Error, Result};
use gradus_core::dataset::Remarks;
use gradus_core::estimator::AnyFitted;

impl App {
    /// Puts thresholds for each group around a fitted model of two classes. `request` says which data they are chosen by: data that
    /// the model has not seen, on which its scores are what they will be on new data.
    ///
    /// # Errors
    /// If the model does not decide between two classes of a table, the data cannot be read, or a group lacks a class that the
    /// constraint needs.
    pub fn fit_thresholds(
        &self,
        fitted: AnyFitted,
        request: &FairnessRequest,
        params: &FairThresholds,
        remarks: &mut Remarks<'_>,
    ) -> Result<AnyFitted> {
        if request.group.is_empty() {
            return Err(Error::data(
                "thresholds for groups: name the columns of the groups with option `group`",
            ));
        }
        let (samples, table) = read(fitted.predictor()?, request, remarks)?;
        let attributes = request.group.iter().map(|name| groups_of(&table, name));
        let data = GroupedSamples::new(samples, attributes.collect::<Result<_>>()?)?;
        let seen = fitted.report.training.as_ref();
        if let Some(share) = seen.and_then(|training| data.samples().share_in(training))
            && share >= 0.5
        {
            remarks.push(format!(
                "warning: the model was fitted to about {:.0} % of {}: its scores are better there than on new data, and rates \
                 will be less equal than on this data",
                100.0 * share,
                request.data.display()
            ));
        }
        Ok(params.fit_around(fitted, &data)?.into_any())
    }
}
