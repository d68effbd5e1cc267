//! Recommenders and features of users and items.

use crate::ratings::{Notes, fit, made};
use crate::{Check, Finding, ensure, error_text, found, quick};
use gradus_core::estimator::{Estimator, Run};
use gradus_core::iterate::Checkpoint;
use gradus_core::progress::Stop;
use gradus_core::recommend::{FeatureContribution, Filter, Profile, Recipient, Recommend};
use gradus_data::{Column, Entity, FeatureRow, Id, IdVec, Ratings, SideTable, Table};
use gradus_file::Reader;
use std::time::Duration;

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "features are learned from, or refused", run: declared },
    Check { name: "who has features and no rating gets a list", run: cold },
    Check { name: "with features, 1 and 5 threads give the same bytes", run: threads },
    Check {
        name: "with features, interrupted and resumed it ends in the same bytes",
        run: resumed,
    },
    Check { name: "with features, saved and loaded it is the same", run: saved },
    Check { name: "an explanation names the features, and adds up", run: explained },
    Check { name: "features and ratings describe someone together", run: together },
];

/// Ratings with features of users and items, of which the last ones have no rating.
fn described(seed: u64) -> Result<Ratings, String> {
    let ratings = made(seed)?;
    let side = |of: Entity, n: usize| {
        let ids: IdVec = (0..n as i64).map(Id::Int).collect();
        let words = (0..n).map(|row| Some(["a", "b", "c"][row * 7 % 3]));
        let columns = vec![
            (
                "size".to_owned(),
                Column::Numbers((0..n).map(|row| (row * 13 % 29) as f64).collect()),
            ),
            ("kind".to_owned(), found(Column::from_words(words))?),
        ];
        let table = found(Table::from_columns(columns))?;
        let side = found(SideTable::from_ids(&ids, &table, &mut Vec::new()))?;
        Ok::<_, String>((of, side))
    };
    let numbered =
        ratings.iter().map(|r| (Id::Int(r.user.into()), Id::Int(r.item.into()), r.value));
    let mut ratings = found(Ratings::from_triplets(numbered))?;
    let (n_users, n_items) = (ratings.n_users(), ratings.n_items());
    for (of, n) in [(Entity::User, n_users + 10), (Entity::Item, n_items + 10)] {
        let (of, side) = side(of, n)?;
        ratings = found(ratings.with_features(of, &side))?;
    }
    Ok(ratings)
}

/// Whether a model declares that it learns from features.
fn takes(model: &dyn Estimator) -> bool {
    model.traits().takes_features()
}

fn declared(model: &dyn Estimator) -> Finding {
    let data = described(51)?;
    if takes(model) {
        let fitted = fit(model, &data)?;
        let model = found(fitted.recommend())?;
        for of in Entity::ALL {
            let own = data.features(of).map(|features| features.encoder());
            ensure!(model.encoder(of) == own, "the encoder of {}s is lost", of.name());
        }
        return Ok(());
    }
    let text = error_text(model.fit(&quick(model), &data, None, &Run::default()))?;
    ensure!(text.contains("features"), "{text:?} does not say why");
    let fitted = fit(model, &made(51)?)?;
    let model = found(fitted.recommend())?;
    let features = FeatureRow { indices: vec![0], values: vec![1.0] };
    let target = Recipient::Described { features: &features, rated: None };
    let text = error_text(model.top(&target, 3, &Filter::default()))?;
    ensure!(text.contains("features"), "{text:?} does not say why");
    Ok(())
}

fn cold(model: &dyn Estimator) -> Finding {
    if !takes(model) {
        return Ok(());
    }
    let data = described(52)?;
    let averages = model.traits().averages;
    let fitted = fit(model, &data)?;
    let model = found(fitted.recommend())?;
    let user = data.n_users() as u32 - 1;
    ensure!(data.by_user().range(user as usize).is_empty(), "the last user has ratings");
    let list = found(model.top(&Recipient::User(user), 1000, &Filter::default()))?;
    ensure!(list.len() == data.n_items(), "{} of {} items", list.len(), data.n_items());
    ensure!(list.iter().all(|s| s.score.is_finite()), "a score is not finite");
    let Some(features) = data.features(Entity::User) else { return Err("no features".into()) };
    let (indices, values) = features.matrix().row(user as usize);
    let row = FeatureRow { indices: indices.to_vec(), values: values.to_vec() };
    let target = Recipient::Described { features: &row, rated: None };
    let again = found(model.top(&target, 1000, &Filter::default()))?;
    // Draws are kept in half precision.
    let slack = if averages { 1e-3 } else { 1e-4 };
    for (a, b) in list.iter().zip(&again) {
        ensure!((a.score - b.score).abs() < slack, "{} and {}", a.score, b.score);
    }
    Ok(())
}

fn threads(model: &dyn Estimator) -> Finding {
    if !takes(model) {
        return Ok(());
    }
    let data = described(53)?;
    let with = |threads: usize| -> Result<Vec<u8>, String> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| e.to_string())?;
        pool.install(|| found(fit(model, &data)?.to_bytes()))
    };
    ensure!(with(1)? == with(5)?, "1 and 5 threads differ");
    Ok(())
}

fn resumed(model: &dyn Estimator) -> Finding {
    if !takes(model) || !model.traits().resumable {
        return Ok(());
    }
    let data = described(54)?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = folder.path().join("checkpoint");
    let checkpoint = Checkpoint { path, every: Duration::MAX, resume: true };
    let whole = found(fit(model, &data)?.to_bytes())?;
    let stop = Stop::new();
    let notes = Notes::new(Some((2, stop.clone())));
    let run =
        Run { observer: &notes, stop, checkpoint: Some(checkpoint.clone()), ..Run::default() };
    let part = found(model.fit(&quick(model), &data, None, &run))?;
    ensure!(part.report.iterations == 2, "it stopped after {}", part.report.iterations);
    let run = Run { checkpoint: Some(checkpoint), ..Run::default() };
    let rest = found(model.fit(&quick(model), &data, None, &run))?;
    ensure!(found(rest.to_bytes())? == whole, "the resumed fit ends in other bytes");
    Ok(())
}

fn saved(model: &dyn Estimator) -> Finding {
    if !takes(model) {
        return Ok(());
    }
    let data = described(55)?;
    let fitted = fit(model, &data)?;
    let bytes = found(fitted.to_bytes())?;
    let mut file = found(Reader::from_bytes(bytes.clone()))?;
    let loaded = found(model.read(&mut file))?;
    ensure!(found(loaded.to_bytes())? == bytes, "it is written as other bytes");
    let features = first_features(&data)?;
    let target = Recipient::Described { features: &features, rated: None };
    let list = |fitted: &dyn Recommend| found(fitted.top(&target, 20, &Filter::default()));
    let (one, other) = (list(found(fitted.recommend())?)?, list(found(loaded.recommend())?)?);
    ensure!(one == other, "someone described by features gets another list");
    Ok(())
}

/// The features of the first user.
fn first_features(data: &Ratings) -> Result<FeatureRow, String> {
    let Some(features) = data.features(Entity::User) else { return Err("no features".into()) };
    let (indices, values) = features.matrix().row(0);
    Ok(FeatureRow { indices: indices.to_vec(), values: values.to_vec() })
}

fn explained(model: &dyn Estimator) -> Finding {
    if !takes(model) {
        return Ok(());
    }
    let data = described(56)?;
    let fitted = fit(model, &data)?;
    let model = found(fitted.recommend())?;
    // With ratings and without, of an item with ratings and of one without.
    for user in [0, data.n_users() as u32 - 1] {
        for item in [0, data.n_items() as u32 - 1] {
            let why = found(model.explain(&Recipient::User(user), item))?;
            let parts = why.contributions.iter().map(|part| part.contribution);
            let parts = parts.chain(why.user_features.iter().map(|part| part.contribution));
            let sum = why.base + parts.sum::<f32>();
            ensure!((sum - why.score).abs() < 1e-3, "{sum} for {}", why.score);
            let names = |parts: &[FeatureContribution]| {
                parts.iter().any(|part| part.feature == "size" && part.contribution.is_finite())
            };
            ensure!(names(&why.user_features), "user {user}: `size` is not named");
            ensure!(names(&why.item_features), "item {item}: `size` is not named");
        }
    }
    Ok(())
}

fn together(model: &dyn Estimator) -> Finding {
    if !takes(model) {
        return Ok(());
    }
    let data = described(57)?;
    let fitted = fit(model, &data)?;
    let model = found(fitted.recommend())?;
    let features = first_features(&data)?;
    let profile = Profile { items: vec![1, 2], values: vec![5.0, 1.0] };
    let target = Recipient::Described { features: &features, rated: Some(&profile) };
    let list = found(model.top(&target, 1000, &Filter::default()))?;
    ensure!(list.len() == data.n_items() - 2, "{} of {} items", list.len(), data.n_items());
    ensure!(list.iter().all(|s| s.score.is_finite()), "a score is not finite");
    let far = FeatureRow { indices: vec![9999], values: vec![1.0] };
    let target = Recipient::Described { features: &far, rated: None };
    let text = error_text(model.top(&target, 3, &Filter::default()))?;
    ensure!(text.contains("features"), "{text:?} does not say why");
    Ok(())
}
