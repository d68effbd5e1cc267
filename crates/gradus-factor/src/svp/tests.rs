use super::*;
use crate::testing::on_threads;
use gradus_data::make::RatingsSpec;

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let data = RatingsSpec { rank: 3, ..RatingsSpec::new(700, 60, 9000) }.make(6).unwrap().ratings;
    let fit = || Svp::new().rank(3).max_iter(8).tol(0.0).fit(&data).unwrap();
    let (one, four) = (on_threads(1, fit), on_threads(4, fit));
    assert_eq!(one.report.objective.to_bits(), four.report.objective.to_bits());
    assert_eq!(one.model.user_factors(5), four.model.user_factors(5));
}

#[test]
fn a_rank_past_the_sides_is_cut_and_said() {
    let data = RatingsSpec { rank: 2, ..RatingsSpec::new(30, 5, 100) }.make(1).unwrap().ratings;
    let fitted = Svp::new().rank(9).fit(&data).unwrap();
    assert_eq!(fitted.model.rank(), 5);
    assert!(fitted.report.notes.iter().any(|note| note.starts_with("rank 9 is more than")));
}
