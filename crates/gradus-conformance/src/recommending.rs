//! Models that recommend.

use crate::ratings::{fit, made};
use crate::{Check, Finding, ensure, error_text, found};
use gradus_core::estimator::{AnyFitted, Estimator, RecommenderTraits};
use gradus_core::recommend::{Categories, Filter, Profile, Recipient};
use gradus_core::update::UpdateOptions;
use gradus_data::{Csr, Id, Ratings};
use gradus_file::Reader;

/// The checks of this module.
pub const CHECKS: &[Check] = &[
    Check { name: "the best come first, what was seen is left out", run: top },
    Check { name: "allow and deny lists are kept", run: lists },
    Check { name: "many users get what each gets alone", run: many },
    Check { name: "counts and categories are kept", run: limits },
    Check { name: "the users of an item are sorted and have not rated it", run: users_of_item },
    Check { name: "an unknown user or item is refused by number", run: unknown },
    Check { name: "similar items are sorted, in range, and not the item itself", run: similar },
    Check { name: "an explanation adds up to the score", run: explained },
    Check { name: "someone new is folded in by their ratings", run: folded_in },
    Check { name: "a profile that makes no sense is refused", run: profiles },
    Check { name: "a profile's own items are left out, whatever their order", run: profile_order },
];

/// The checks on models that learn from new ratings.
pub const UPDATING: &[Check] = &[
    Check { name: "new ratings leave all other users as they were", run: added },
    Check { name: "new users and new items are taken in and kept in the file", run: newcomers },
];

fn top(model: &dyn Estimator) -> Finding {
    let data = made(21)?;
    let fitted = fit(model, &data)?;
    let model = found(fitted.recommend())?;
    for user in 0..data.n_users() as u32 {
        let seen = data.by_user().row(user as usize).0;
        let found_items = found(model.top(&Recipient::User(user), 1000, &Filter::default()))?;
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
        let few = found(model.top(&Recipient::User(user), 3, &Filter::default()))?;
        ensure!(few[..] == found_items[..few.len()], "user {user}: the first 3 depend on n");
        let all = Filter { include_seen: true, ..Filter::default() };
        let all = found(model.top(&Recipient::User(user), 1000, &all))?;
        ensure!(all.len() == data.n_items(), "user {user}: {} of all items", all.len());
    }
    Ok(())
}

fn lists(model: &dyn Estimator) -> Finding {
    let fitted = fit(model, &made(22)?)?;
    let model = found(fitted.recommend())?;
    let filter = Filter {
        allow: Some(vec![3, 4, 5, 6]),
        deny: vec![4],
        include_seen: true,
        ..Filter::default()
    };
    let mut items: Vec<u32> =
        found(model.top(&Recipient::User(0), 10, &filter))?.iter().map(|s| s.item).collect();
    items.sort_unstable();
    ensure!(items == [3, 5, 6], "{items:?}");
    let nothing = Filter { allow: Some(Vec::new()), ..Filter::default() };
    ensure!(found(model.top(&Recipient::User(0), 10, &nothing))?.is_empty(), "an empty allow list");
    Ok(())
}

fn many(model: &dyn Estimator) -> Finding {
    let data = made(28)?;
    let fitted = fit(model, &data)?;
    let model = found(fitted.recommend())?;
    let users: Vec<u32> = (0..data.n_users() as u32).rev().collect();
    for (n, filter) in [
        (3, Filter::default()),
        (1000, Filter { include_seen: true, ..Filter::default() }),
        (2, Filter { deny: vec![1, 7], min_count: 2, ..Filter::default() }),
    ] {
        let lists = found(model.top_many(&users, n, &filter))?;
        ensure!(lists.len() == users.len(), "{} lists", lists.len());
        for (&user, list) in users.iter().zip(&lists) {
            let alone = found(model.top(&Recipient::User(user), n, &filter))?;
            ensure!(*list == alone, "user {user}: {list:?} and alone {alone:?}");
        }
    }
    let text = error_text(model.top_many(&[0, 9999], 3, &Filter::default()))?;
    ensure!(text.contains("9999"), "{text:?}");
    Ok(())
}

fn limits(model: &dyn Estimator) -> Finding {
    let data = made(29)?;
    let fitted = fit(model, &data)?;
    let model = found(fitted.recommend())?;
    let count = |item: u32| data.by_item().row(item as usize).0.len();
    let counted = Filter { min_count: 5, max_count: Some(40), ..Filter::default() };
    let list = found(model.top(&Recipient::User(1), 1000, &counted))?;
    ensure!(list.iter().all(|s| (5..=40).contains(&count(s.item))), "an item of another count");
    let of_item: Vec<Option<u32>> = (0..data.n_items() as u32).map(|item| Some(item % 3)).collect();
    let categories = Some(Categories { of_item, max: 2 });
    let limited = Filter { categories, ..Filter::default() };
    let all = found(model.top(&Recipient::User(1), 1000, &Filter::default()))?;
    let list = found(model.top(&Recipient::User(1), 1000, &limited))?;
    let mut counts = [0; 3];
    let greedy: Vec<_> = all
        .into_iter()
        .filter(|scored| {
            counts[scored.item as usize % 3] += 1;
            counts[scored.item as usize % 3] <= 2
        })
        .collect();
    ensure!(list == greedy, "{list:?} under limits, {greedy:?} by taking the best that fits");
    Ok(())
}

fn users_of_item(model: &dyn Estimator) -> Finding {
    let data = made(30)?;
    let fitted = fit(model, &data)?;
    let model = found(fitted.recommend())?;
    let raters = data.by_item().row(4).0;
    let users = found(model.top_users(4, 1000, false))?;
    ensure!(users.len() == data.n_users() - raters.len(), "{} users", users.len());
    ensure!(users.iter().all(|s| !raters.contains(&s.user)), "one who has rated it");
    ensure!(users.windows(2).all(|p| p[0].score >= p[1].score), "not sorted");
    ensure!(found(model.top_users(4, 1000, true))?.len() == data.n_users(), "not all users");
    let text = error_text(model.top_users(9999, 3, true))?;
    ensure!(text.contains("9999"), "{text:?}");
    Ok(())
}

fn added(model: &dyn Estimator) -> Finding {
    let data = made(31)?;
    let mut fitted = fit(model, &data)?;
    let pairs: Vec<_> = (0..data.n_users() as u32)
        .filter(|&user| user != 2)
        .flat_map(|user| (0..data.n_items() as u32).map(move |item| (Some(user), Some(item))))
        .collect();
    let before = found(fitted.recommend())?.predict(&pairs);
    // Values that are there already, so that the range of the ratings stays.
    let events = data.filter(|at| data.by_user().range(2).contains(&at));
    let updated = found(fitted.update(&events, &UpdateOptions::default()))?;
    ensure!((updated.users, updated.new_users, updated.new_items) == (1, 0, 0), "{updated:?}");
    ensure!(updated.changed == events.len(), "{updated:?}");
    let model = found(fitted.recommend())?;
    ensure!(model.history().map(Csr::nnz) == Some(data.len()), "the history has grown");
    ensure!(model.predict(&pairs) == before, "other users have changed");
    Ok(())
}

fn newcomers(estimator: &dyn Estimator) -> Finding {
    let data = made(34)?;
    let mut fitted = fit(estimator, &data)?;
    let item = |at: usize| data.items().get(at);
    // The new item comes before all others, which moves them.
    let (old, new_user, new_item) = (data.users().get(5), Id::Int(100_000), Id::Int(-7));
    let rows = [
        (old, new_item, 4.0),
        (data.users().get(6), new_item, 5.0),
        (new_user, new_item, 4.0),
        (new_user, item(1), 5.0),
        (new_user, item(2), 3.0),
    ];
    let others: Vec<(Id<'_>, Id<'_>)> = (0..data.n_users())
        .filter(|user| ![5, 6].contains(user))
        .flat_map(|user| (0..data.n_items()).map(move |item| (user, item)))
        .map(|(user, at)| (data.users().get(user), item(at)))
        .collect();
    let predicted = |fitted: &AnyFitted, pairs: &[(Id<'_>, Id<'_>)]| -> Result<Vec<f32>, String> {
        let model = found(fitted.recommend())?;
        let rows =
            pairs.iter().map(|(user, item)| (model.users().find(*user), model.items().find(*item)));
        Ok(model.predict(&rows.collect::<Vec<_>>()))
    };
    let before = predicted(&fitted, &others)?;
    let events = found(Ratings::from_triplets(rows))?;
    let updated = found(fitted.update(&events, &UpdateOptions::default()))?;
    ensure!((updated.new_users, updated.new_items, updated.changed) == (1, 1, 0), "{updated:?}");
    ensure!(predicted(&fitted, &others)? == before, "others have changed");
    let model = found(fitted.recommend())?;
    ensure!(model.items().len() == data.n_items() + 1, "{} items", model.items().len());
    let user = model.users().find(new_user).ok_or("the new user is not known")?;
    let list = found(model.top(&Recipient::User(user), 1000, &Filter::default()))?;
    ensure!(list.len() == data.n_items() - 2, "{} items for the new user", list.len());
    ensure!(list.iter().any(|s| s.score != list[0].score), "the new user's list says nothing");
    ensure!(list.iter().all(|s| s.score.is_finite()), "a score that is no number");
    // The new item for one who has not got it.
    let target = model.users().find(data.users().get(9)).ok_or("a user is gone")?;
    let all = found(model.top(&Recipient::User(target), 1000, &Filter::default()))?;
    let added = model.items().find(new_item);
    ensure!(all.iter().any(|s| Some(s.item) == added), "the new item is not ranked");
    let bytes = found(fitted.to_bytes())?;
    let again =
        found(Reader::from_bytes(bytes.clone()).and_then(|mut file| estimator.read(&mut file)))?;
    ensure!(found(again.to_bytes())? == bytes, "bytes differ after loading");
    let loaded =
        found(found(again.recommend())?.top(&Recipient::User(user), 1000, &Filter::default()))?;
    ensure!(loaded == list, "the new user's list differs after loading");
    Ok(())
}

fn unknown(model: &dyn Estimator) -> Finding {
    let fitted = fit(model, &made(23)?)?;
    let model = found(fitted.recommend())?;
    for text in [
        error_text(model.top(&Recipient::User(9999), 3, &Filter::default()))?,
        error_text(model.similar_items(9999, 3))?,
        error_text(model.explain(&Recipient::User(0), 9999))?,
        error_text(model.explain(&Recipient::User(9999), 0))?,
        error_text(model.top(
            &Recipient::User(0),
            3,
            &Filter { deny: vec![9999], ..Filter::default() },
        ))?,
    ] {
        ensure!(text.contains("9999"), "{text:?}");
    }
    Ok(())
}

fn traits(model: &dyn Estimator) -> Result<RecommenderTraits, String> {
    model.traits().recommender.ok_or_else(|| "its traits do not tell of a recommender".to_owned())
}

fn similar(model: &dyn Estimator) -> Finding {
    let fitted = fit(model, &made(24)?)?;
    let similar = traits(model)?.similar;
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
        let target = Recipient::User(user);
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
    if !traits(model)?.exact_fold_in {
        return Ok(());
    }
    let data = made(26)?;
    let fitted = fit(model, &data)?;
    let model = found(fitted.recommend())?;
    for user in [0u32, 33] {
        let (items, values) = data.by_user().row(user as usize);
        let profile = Profile { items: items.to_vec(), values: values.to_vec() };
        let known = found(model.top(&Recipient::User(user), 10, &Filter::default()))?;
        let folded = found(model.top(&Recipient::Profile(&profile), 10, &Filter::default()))?;
        for (a, b) in known.iter().zip(&folded) {
            ensure!((a.score - b.score).abs() < 0.05, "user {user}: {} and {}", a.score, b.score);
        }
    }
    Ok(())
}

fn profile_order(model: &dyn Estimator) -> Finding {
    let data = made(32)?;
    let fitted = fit(model, &data)?;
    let model = found(fitted.recommend())?;
    let by_user = data.by_user();
    let mut cases: Vec<Vec<(u32, f32)>> = [0, 33]
        .iter()
        .map(|&user| {
            let (items, values) = by_user.row(user);
            items.iter().copied().zip(values.iter().copied()).collect()
        })
        .collect();
    cases.push(vec![(0, 4.0), (3, 2.0), (5, 5.0)]);
    let profile = |rated: &[(u32, f32)]| {
        let (items, values) = rated.iter().copied().unzip();
        Profile { items, values }
    };
    for mut rated in cases {
        let sorted = profile(&rated);
        let target = Recipient::Profile(&sorted);
        let list = found(model.top(&target, 1000, &Filter::default()))?;
        ensure!(list.len() == data.n_items() - rated.len(), "{} items for {rated:?}", list.len());
        ensure!(
            list.iter().all(|s| !sorted.items.contains(&s.item)),
            "an item of the profile is recommended: {rated:?}"
        );
        let explained = found(model.explain(&target, list[0].item))?;
        for round in 0..3 {
            // Backwards, then by other keys.
            rated.sort_by_key(|(item, _)| match round {
                0 => u32::MAX - item,
                _ => (item + 7).wrapping_mul(2_654_435_761 * round),
            });
            let other = profile(&rated);
            let target = Recipient::Profile(&other);
            let again = found(model.top(&target, 1000, &Filter::default()))?;
            ensure!(again == list, "another order of the profile, another list: {rated:?}");
            let again = found(model.explain(&target, list[0].item))?;
            ensure!(again == explained, "another order of the profile, another explanation");
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
        let text = error_text(model.top(&Recipient::Profile(profile), 3, &Filter::default()))
            .map_err(|e| format!("{profile:?} {e}"))?;
        ensure!(text.contains("profile"), "{text:?}");
    }
    Ok(())
}
