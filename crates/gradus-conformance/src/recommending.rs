//! Models that recommend.

use crate::ratings::{fit, made};
use crate::{Check, Finding, ensure, error_text, found};
use gradus::core::estimator::Estimator;
use gradus::core::recommend::{Filter, Profile, Target};

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "the best come first, what was seen is left out", run: top },
    Check { name: "allow and deny lists are kept", run: lists },
    Check { name: "an unknown user or item is refused by number", run: unknown },
    Check { name: "similar items are sorted, in range, and not the item itself", run: similar },
    Check { name: "an explanation adds up to the score", run: explained },
    Check { name: "someone new is folded in by their ratings", run: folded_in },
    Check { name: "a profile that makes no sense is refused", run: profiles },
];

fn top(model: &dyn Estimator) -> Finding {
    let data = made(21)?;
    let fitted = fit(model, &data)?;
    let model = found(fitted.recommend())?;
    for user in 0..data.n_users() as u32 {
        let seen = data.by_user().row(user as usize).0;
        let found_items = found(model.top(&Target::User(user), 1000, &Filter::default()))?;
        ensure!(
            found_items.len() == data.n_items() - seen.len(),
            "user {user}: {} items",
            found_items.len()
        );
        ensure!(found_items.iter().all(|s| !seen.contains(&s.item)), "user {user}: a seen item");
        ensure!(
            found_items.windows(2).all(|p| p[0].score >= p[1].score),
            "user {user}: not sorted"
        );
        let few = found(model.top(&Target::User(user), 3, &Filter::default()))?;
        ensure!(few[..] == found_items[..few.len()], "user {user}: the first 3 depend on n");
        let all = Filter { include_seen: true, ..Filter::default() };
        let all = found(model.top(&Target::User(user), 1000, &all))?;
        ensure!(all.len() == data.n_items(), "user {user}: {} of all items", all.len());
    }
    Ok(())
}

fn lists(model: &dyn Estimator) -> Finding {
    let fitted = fit(model, &made(22)?)?;
    let model = found(fitted.recommend())?;
    let filter = Filter { allow: Some(vec![3, 4, 5, 6]), deny: vec![4], include_seen: true };
    let mut items: Vec<u32> =
        found(model.top(&Target::User(0), 10, &filter))?.iter().map(|s| s.item).collect();
    items.sort_unstable();
    ensure!(items == [3, 5, 6], "{items:?}");
    let nothing = Filter { allow: Some(Vec::new()), ..Filter::default() };
    ensure!(found(model.top(&Target::User(0), 10, &nothing))?.is_empty(), "an empty allow list");
    Ok(())
}

fn unknown(model: &dyn Estimator) -> Finding {
    let fitted = fit(model, &made(23)?)?;
    let model = found(fitted.recommend())?;
    for text in [
        error_text(model.top(&Target::User(9999), 3, &Filter::default()))?,
        error_text(model.similar_items(9999, 3))?,
        error_text(model.explain(&Target::User(0), 9999))?,
        error_text(model.explain(&Target::User(9999), 0))?,
        error_text(model.top(
            &Target::User(0),
            3,
            &Filter { deny: vec![9999], ..Filter::default() },
        ))?,
    ] {
        ensure!(text.contains("9999"), "{text:?}");
    }
    Ok(())
}

fn similar(model: &dyn Estimator) -> Finding {
    let fitted = fit(model, &made(24)?)?;
    let similar = model.traits().similar;
    let model = found(fitted.recommend())?;
    if !similar {
        error_text(model.similar_items(5, 8))?;
        return Ok(());
    }
    let near = found(model.similar_items(5, 8))?;
    ensure!(near.len() == 8, "{} items", near.len());
    ensure!(near.iter().all(|s| s.item != 5), "the item itself");
    ensure!(near.iter().all(|s| (-1.0..=1.0).contains(&s.score)), "out of range");
    ensure!(near.windows(2).all(|p| p[0].score >= p[1].score), "not sorted");
    Ok(())
}

fn explained(model: &dyn Estimator) -> Finding {
    let data = made(25)?;
    let fitted = fit(model, &data)?;
    let model = found(fitted.recommend())?;
    for user in [0, 11, 42] {
        let target = Target::User(user);
        for scored in found(model.top(&target, 2, &Filter::default()))? {
            let reason = found(model.explain(&target, scored.item))?;
            let sum =
                reason.base + reason.contributions.iter().map(|c| c.contribution).sum::<f32>();
            ensure!((sum - scored.score).abs() < 5e-3, "user {user}: {sum} for {}", scored.score);
            let rated = data.by_user().row(user as usize).0.len();
            ensure!(
                reason.contributions.len() == rated,
                "user {user}: not one part for each rating"
            );
        }
    }
    Ok(())
}

fn folded_in(model: &dyn Estimator) -> Finding {
    if !model.traits().exact_fold_in {
        return Ok(());
    }
    let data = made(26)?;
    let fitted = fit(model, &data)?;
    let model = found(fitted.recommend())?;
    for user in [0u32, 33] {
        let (items, values) = data.by_user().row(user as usize);
        let profile = Profile { items: items.to_vec(), values: values.to_vec() };
        let known = found(model.top(&Target::User(user), 10, &Filter::default()))?;
        let folded = found(model.top(&Target::Profile(&profile), 10, &Filter::default()))?;
        for (a, b) in known.iter().zip(&folded) {
            ensure!((a.score - b.score).abs() < 0.05, "user {user}: {} and {}", a.score, b.score);
        }
    }
    Ok(())
}

fn profiles(model: &dyn Estimator) -> Finding {
    let fitted = fit(model, &made(27)?)?;
    let model = found(fitted.recommend())?;
    let broken = [
        Profile { items: vec![], values: vec![] },
        Profile { items: vec![1], values: vec![1.0, 2.0] },
        Profile { items: vec![1, 1], values: vec![1.0, 2.0] },
        Profile { items: vec![9999], values: vec![1.0] },
        Profile { items: vec![1], values: vec![f32::INFINITY] },
    ];
    for profile in &broken {
        let text = error_text(model.top(&Target::Profile(profile), 3, &Filter::default()))
            .map_err(|e| format!("{profile:?} {e}"))?;
        ensure!(text.contains("profile"), "{text:?}");
    }
    Ok(())
}
