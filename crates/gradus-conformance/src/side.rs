//! Recommenders and features of users and items.

use crate::ratings::{fit, made};
use crate::{Check, Finding, ensure, error_text, found, quick};
use gradus_core::estimator::{Estimator, Run};
use gradus_core::recommend::{Filter, Recipient};
use gradus_data::{Column, Entity, FeatureRow, Id, IdVec, Ratings, SideTable, Table};

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "features are learned from, or refused", run: declared },
    Check { name: "who has features and no rating gets a list", run: cold },
    Check { name: "with features, 1 and 5 threads give the same bytes", run: threads },
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
    for (a, b) in list.iter().zip(&again) {
        ensure!((a.score - b.score).abs() < 1e-4, "{} and {}", a.score, b.score);
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
