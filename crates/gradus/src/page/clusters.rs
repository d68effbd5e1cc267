//! The page of a clustering: sizes, silhouettes, what sets clusters apart, and samples in two principal components.

use super::{close, objective, stats};
use gradus_base::Result;
use gradus_core::cluster::Cluster;
use gradus_core::estimator::{AnyFitted, Fit as _};
use gradus_core::transform::Transform as _;
use gradus_data::{Matrix, Samples, Target};
use gradus_latent::Pca;
use gradus_metrics::clustering::{Agreement, Shape, Silhouette};
use gradus_report::{Bars, Cell, Page, PageTable, Scatter, Section, TableColumn, number};
use std::borrow::Cow;

/// Clusters that have a colour of their own.
const COLOURS: usize = 6;
/// Clusters in tables and bars.
const SHOWN: usize = 40;
/// Samples that are drawn, and measured against each other.
const DRAWN: usize = 5_000;
/// Features that are named for each cluster.
const FEATURES: usize = 4;
/// Classes beside the clusters.
const CLASSES: usize = 12;

/// The page: sizes and how the fit went; with samples, where they lie and how well they are clustered.
///
/// # Errors
/// If the samples have other features than the model.
pub(super) fn clusters_page(
    fitted: &AnyFitted,
    model: &dyn Cluster,
    title: &str,
    samples: Option<(&str, &Samples)>,
) -> Result<Page> {
    let (k, report) = (model.n_clusters(), &fitted.report);
    let subtitle = format!(
        "{k} clusters of {} features: {} iterations, {}.",
        model.inputs().n_features(),
        report.iterations,
        report.stop_reason
    );
    let mut headline: Vec<(String, String, String)> = Vec::new();
    if let Some(score) = report.validation {
        headline.push((format!("held-out {}", report.metric), number(score), String::new()));
    }
    let found = samples.map(|(source, samples)| Found::new(model, source, samples)).transpose()?;
    if let Some(silhouette) = found.as_ref().and_then(|found| found.silhouette.as_ref()) {
        headline.push(("silhouette".into(), number(silhouette.mean), sampled(silhouette)));
    }
    let mut page = Page::new(title).subtitle(subtitle).stats(stats(headline, fitted));
    page = page.section("Sizes", |section| {
        section.text("Samples of the training data in each cluster.").chart(sizes(&model.sizes()))
    });
    if let Some(found) = &found {
        page = found.sections(page)?;
    }
    if report.trace.len() > 1 {
        page = page.section("How the fit went", |section| section.chart(objective(fitted)));
    }
    Ok(close(page, fitted))
}

fn sampled(silhouette: &Silhouette) -> String {
    match silhouette.samples < silhouette.of {
        true => format!("of {} samples drawn at random", number(silhouette.samples as f64)),
        false => String::new(),
    }
}

/// The clusters in the order of their sizes, largest first.
fn by_size(sizes: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|&a, &b| sizes[b].cmp(&sizes[a]).then(a.cmp(&b)));
    order
}

fn sizes(sizes: &[u64]) -> Bars {
    let order = by_size(sizes);
    let bars = order.iter().take(SHOWN).map(|&at| (format!("cluster {at}"), sizes[at] as f64));
    let bars = Bars::new(bars).x_label("samples");
    match order.len() > SHOWN {
        true => bars.title(format!("The {SHOWN} largest of {} clusters", order.len())),
        false => bars.title("Samples in each cluster"),
    }
}

/// Samples and what is found in them.
struct Found<'a> {
    source: &'a str,
    samples: &'a Samples,
    /// The features as distances are measured.
    features: Cow<'a, Matrix>,
    k: usize,
    labels: Vec<Option<u32>>,
    sizes: Vec<u64>,
    shape: Option<Shape>,
    silhouette: Option<Silhouette>,
    agreement: Option<Agreement>,
}

impl<'a> Found<'a> {
    fn new(model: &dyn Cluster, source: &'a str, samples: &'a Samples) -> Result<Self> {
        let k = model.n_clusters();
        let labels = model.labels(samples.features())?;
        let mut sizes = vec![0; k];
        labels.iter().flatten().for_each(|&label| sizes[label as usize] += 1);
        // Samples of no cluster count as one more.
        let plain: Vec<u32> = labels.iter().map(|label| label.unwrap_or(k as u32)).collect();
        let features = model.measured(samples.features());
        // Of one cluster, or as many as samples, there is no measure.
        let shape = Shape::new(&features, &plain).ok();
        let silhouette = Silhouette::new(&features, &plain, DRAWN, 0).ok();
        let agreement = match samples.target() {
            Target::Classes { codes, .. } if samples.has_target() => {
                Some(Agreement::new(codes, &plain)?)
            }
            _ => None,
        };
        Ok(Self { source, samples, features, k, labels, sizes, shape, silhouette, agreement })
    }

    fn sections(&self, page: Page) -> Result<Page> {
        let heading = format!("{} samples of {}", number(self.samples.len() as f64), self.source);
        let drawn = self.components()?;
        let page = page.section(&heading, |section| {
            let section = self.measures(section);
            match drawn {
                Some(chart) => section.chart(chart),
                None => section,
            }
        });
        let page = page.section("What sets clusters apart", |section| {
            section
                .text(
                    "The features whose mean in a cluster is farthest from the mean of all samples, in standard \
                     deviations of all samples.",
                )
                .table(&self.apart())
        });
        let page = match &self.silhouette {
            Some(silhouette) => page.section("Silhouettes", |section| {
                let section = section.text(
                    "How much nearer samples are to their own cluster than to the next one: 1 is far apart, 0 on the \
                     border, below 0 nearer to another cluster.",
                );
                section.chart(self.silhouettes(silhouette))
            }),
            None => page,
        };
        Ok(match (self.samples.target(), &self.agreement) {
            (Target::Classes { codes, labels }, Some(_)) if labels.len() <= CLASSES => {
                let names: Vec<String> = labels.iter().map(|label| label.to_string()).collect();
                let title = format!("Clusters and {}", self.samples.target_names()[0]);
                page.section(&title, |section| section.table(&self.classes(codes, &names)))
            }
            _ => page,
        })
    }

    fn measures(&self, section: Section) -> Section {
        let mut text = Vec::new();
        if let Some(silhouette) = &self.silhouette {
            let of = sampled(silhouette);
            let of = if of.is_empty() { of } else { format!(" ({of})") };
            text.push(format!("Mean silhouette{of}: {}.", number(silhouette.mean)));
        }
        if let Some(shape) = &self.shape {
            text.push(format!(
                "Davies–Bouldin: {}; smaller is better. Calinski–Harabasz: {}; larger is better.",
                number(shape.davies_bouldin),
                number(shape.calinski_harabasz)
            ));
        }
        if let Some(agreement) = &self.agreement {
            text.push(format!(
                "Agreement with {}: adjusted Rand index {}, normalised mutual information {}, V-measure {} \
                 (homogeneity {}, completeness {}).",
                self.samples.target_names()[0],
                number(agreement.adjusted_rand),
                number(agreement.normalized_mutual_info),
                number(agreement.v_measure),
                number(agreement.homogeneity),
                number(agreement.completeness)
            ));
        }
        match text.is_empty() {
            true => section.text("One cluster, or one for each sample, has no measure."),
            false => section.text(text.join(" ")),
        }
    }

    /// Samples in the first two principal components, coloured by cluster.
    fn components(&self) -> Result<Option<Scatter>> {
        let (n, d) = self.samples.features().shape();
        if n < 2 {
            return Ok(None);
        }
        let every = n.div_ceil(DRAWN).max(1);
        let rows: Vec<u32> = (0..n as u32).step_by(every).collect();
        let features = self.features.select_rows(&rows);
        let axes = d.min(rows.len()).min(2);
        let fitted =
            Pca::new().n_components(axes as f64).fit(&Samples::unlabelled(features.clone())?)?;
        let z = fitted.transform(&features)?;
        let ratios = fitted.explained_ratio();
        let order = by_size(&self.sizes);
        let few = self.k <= COLOURS;
        let own = if few { self.k } else { COLOURS - 1 };
        let mut place = vec![own; self.k];
        order.iter().take(own).enumerate().for_each(|(at, &cluster)| place[cluster] = at);
        let mut groups: Vec<(String, Vec<(f64, f64)>)> =
            order.iter().take(own).map(|at| (format!("cluster {at}"), Vec::new())).collect();
        let rest = if few { "no cluster".to_owned() } else { format!("{} others", self.k - own) };
        groups.push((rest, Vec::new()));
        for (at, &row) in rows.iter().enumerate() {
            let y = if axes > 1 { z[(at, 1)] } else { 0.0 };
            let group = self.labels[row as usize].map_or(own, |label| place[label as usize]);
            groups[group].1.push((z[(at, 0)], y));
        }
        groups.retain(|(_, points)| !points.is_empty());
        let label = |at: usize| match ratios.get(at) {
            Some(ratio) => format!("component {} ({:.0} % of the variance)", at + 1, 100.0 * ratio),
            None => String::new(),
        };
        let chart = Scatter::grouped(groups).title("The first two principal components");
        Ok(Some(chart.x_label(label(0)).y_label(label(1))))
    }

    fn silhouettes(&self, silhouette: &Silhouette) -> Bars {
        let order = by_size(&self.sizes);
        let bars = order.iter().take(SHOWN).filter_map(|&at| {
            let mean = silhouette.clusters.get(at).copied().flatten()?;
            Some((format!("cluster {at}"), mean))
        });
        Bars::new(bars).title("Mean silhouette of each cluster").x_label("silhouette").decimals(3)
    }

    /// The features in which clusters differ most from all samples.
    fn apart(&self) -> PageTable {
        let features = self.samples.features();
        let (n, d) = features.shape();
        let names = self.samples.inputs().feature_names();
        let (mut sums, mut squares) = (vec![0.0; (self.k + 1) * d], vec![0.0; d]);
        // About the first sample, so that features far from 0 keep their digits.
        let base = match features {
            Matrix::Dense(x) if n > 0 => x.row(0).to_vec(),
            _ => vec![0.0; d],
        };
        for (row, label) in self.labels.iter().enumerate() {
            let to = label.map_or(self.k, |label| label as usize) * d;
            let mut add = |at: usize, x: f64| {
                sums[to + at] += x;
                squares[at] += x * x;
            };
            match features {
                Matrix::Dense(x) => {
                    let entries = x.row(row).iter().zip(&base).enumerate();
                    entries.for_each(|(at, (x, base))| add(at, x - base));
                }
                Matrix::Sparse(x) => {
                    let (columns, values) = x.row(row);
                    columns.iter().zip(values).for_each(|(&at, &x)| add(at as usize, x));
                }
            }
        }
        let total = |at: usize| (0..=self.k).map(|label| sums[label * d + at]).sum::<f64>();
        let means: Vec<f64> = (0..d).map(|at| total(at) / n.max(1) as f64).collect();
        let deviation =
            |at: usize| (squares[at] / n.max(1) as f64 - means[at] * means[at]).max(0.0).sqrt();
        let deviations: Vec<f64> = (0..d).map(deviation).collect();
        let table = PageTable::new([
            TableColumn::text("cluster"),
            TableColumn::number("samples"),
            TableColumn::number("per cent").decimals(1).bar(),
            TableColumn::text("most unlike all samples"),
        ]);
        by_size(&self.sizes).into_iter().take(SHOWN).fold(table, |table, label| {
            let size = self.sizes[label];
            let off = |at: usize| match size > 0 && deviations[at] > 0.0 {
                true => (sums[label * d + at] / size as f64 - means[at]) / deviations[at],
                false => 0.0,
            };
            let mut order: Vec<usize> = (0..d).filter(|&at| off(at) != 0.0).collect();
            order.sort_by(|&a, &b| off(b).abs().total_cmp(&off(a).abs()).then(a.cmp(&b)));
            let named = |&at: &usize| {
                format!("{} {:+.2}", names.get(at).map_or("", String::as_str), off(at))
            };
            let text: Vec<String> = order.iter().take(FEATURES).map(named).collect();
            let cells: [Cell; 4] = [
                label.to_string().into(),
                (size as f64).into(),
                (100.0 * size as f64 / n.max(1) as f64).into(),
                text.join(", ").into(),
            ];
            table.row(cells)
        })
    }

    /// How many samples of each class are in each cluster.
    fn classes(&self, codes: &[u32], names: &[String]) -> PageTable {
        let mut counts = vec![0.0; self.k * names.len()];
        for (label, &code) in self.labels.iter().zip(codes) {
            if let Some(label) = label {
                counts[*label as usize * names.len() + code as usize] += 1.0;
            }
        }
        let columns = names.iter().map(|name| TableColumn::number(name.as_str()));
        let table = PageTable::new([TableColumn::text("cluster")].into_iter().chain(columns));
        by_size(&self.sizes).into_iter().take(SHOWN).fold(table, |table, label| {
            let counts = &counts[label * names.len()..][..names.len()];
            let cells = counts.iter().map(|&count| Cell::from(count));
            table.row([Cell::from(label.to_string())].into_iter().chain(cells))
        })
    }
}
