//! Steps that gather the gradients of several values before the rows move.

use super::super::Kernel;
use super::super::lanes::Lanes;
use super::super::rows::padded;
use super::{Entry, Extra, Movable, StepRule, lengths};

/// The gradients gathered for one row.
struct Gathered {
    row: usize,
    /// The step it will take, fixed at the start of the batch, of the factors and of the bias.
    steps: (f32, f32),
    /// The largest change of a prediction through this row by the batch, for each unit of pseudo-residual.
    reach: f32,
    /// Sum of the pseudo-residuals, and of the weights.
    pseudo_residual: f32,
    weight: f32,
}

impl Gathered {
    /// Counts the reach of a value whose other row has this squared norm.
    #[inline(always)]
    fn widen(&mut self, weight: f32, norm: f32) {
        self.reach += weight * (self.steps.0 * norm + self.steps.1);
    }
}

/// A value of the batch: the places of its rows, and what is predicted for it.
struct Planned {
    user: usize,
    item: usize,
    predicted: f32,
}

/// The rows of one side that a batch touches, and what has gathered for them.
#[derive(Default)]
struct Gathering {
    touched: Vec<Gathered>,
    /// `Σ g q` of each, one row after the other.
    sums: Vec<f32>,
    /// For each row of the side, 1 + its place in `touched`, 0 if it is not touched.
    places: Vec<u32>,
}

impl Gathering {
    /// The place of a row, new if need be.
    #[inline(always)]
    fn place(&mut self, rule: &StepRule, stride: usize, row: usize, extra: &Extra) -> usize {
        if self.places[row] == 0 {
            let steps = lengths(rule, extra);
            self.touched.push(Gathered {
                row,
                steps,
                reach: 0.0,
                pseudo_residual: 0.0,
                weight: 0.0,
            });
            self.sums.resize(self.touched.len() * stride, 0.0);
            self.places[row] = self.touched.len() as u32;
        }
        self.places[row] as usize - 1
    }

    #[inline(always)]
    fn gather<L: Lanes>(
        &mut self,
        lanes: L,
        place: usize,
        pseudo_residual: f32,
        weight: f32,
        from: &[f32],
    ) {
        let gathered = &mut self.touched[place];
        gathered.pseudo_residual += pseudo_residual;
        gathered.weight += weight;
        let sums = &mut self.sums[place * from.len()..][..from.len()];
        let pseudo_residual = lanes.splat(pseudo_residual);
        for (sum, from) in sums.chunks_exact_mut(L::N).zip(from.chunks_exact(L::N)) {
            let moved = lanes.fma(pseudo_residual, lanes.load(from), lanes.load(sum));
            lanes.store(sum, moved);
        }
    }

    /// Moves the rows, and forgets them.
    #[inline(always)]
    fn apply<L: Lanes>(&mut self, lanes: L, rule: &StepRule, side: &mut Movable<'_>) {
        let stride = padded(rule.k);
        for (gathered, sums) in self.touched.iter().zip(self.sums.chunks_exact(stride)) {
            let extra = &mut side.extras[gathered.row];
            let row = &mut side.rows[gathered.row * stride..][..stride];
            let penalty = gathered.weight * extra.penalty;
            let step = gathered.steps.0;
            let keep = 1.0 / (1.0 + step * penalty);
            let (keep, by) = (lanes.splat(keep), lanes.splat(step * keep));
            let lambda = lanes.splat(penalty);
            let mut squares = lanes.zero();
            for (row, sum) in row.chunks_exact_mut(L::N).zip(sums.chunks_exact(L::N)) {
                let (x, sum) = (lanes.load(row), lanes.load(sum));
                let gradient = lanes.fnma(lambda, x, sum);
                squares = lanes.fma(gradient, gradient, squares);
                lanes.store(row, lanes.fma(by, sum, lanes.mul(keep, x)));
            }
            if rule.adaptive {
                extra.squares += lanes.sum(squares) / rule.k as f32;
            }
            if rule.biases {
                let penalty = gathered.weight * extra.bias_penalty;
                let gradient = gathered.pseudo_residual - penalty * extra.bias;
                if rule.adaptive {
                    extra.bias_squares += gradient * gradient;
                }
                let step = gathered.steps.1;
                extra.bias =
                    (extra.bias + step * gathered.pseudo_residual) / (1.0 + step * penalty);
            }
            self.places[gathered.row] = 0;
        }
        self.touched.clear();
        self.sums.clear();
    }
}

pub(super) struct Batches<'a> {
    pub(super) rule: &'a StepRule,
    pub(super) users: Movable<'a>,
    pub(super) items: Movable<'a>,
    pub(super) entries: &'a [Entry],
    pub(super) weights: Option<&'a [f32]>,
}

impl Kernel for Batches<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f64 {
        let Batches { rule, mut users, mut items, entries, weights } = self;
        let stride = padded(rule.k);
        let (mut of_users, mut of_items) = (Gathering::default(), Gathering::default());
        of_users.places.resize(users.extras.len(), 0);
        of_items.places.resize(items.extras.len(), 0);
        let mut planned: Vec<Planned> = Vec::with_capacity(rule.batch.min(entries.len()));
        let (mut total, mut first) = (0.0, 0);
        for batch in entries.chunks(rule.batch) {
            let weight = |at: usize| weights.map_or(1.0, |weights| weights[first + at]);
            planned.clear();
            // A row that moves for several values at once overshoots unless each is wary of all.
            for (at, entry) in batch.iter().enumerate() {
                let (row, other) = (entry.user as usize, entry.item as usize);
                let (u, i) = (&users.extras[row], &items.extras[other]);
                let p = &users.rows[row * stride..][..stride];
                let q = &items.rows[other * stride..][..stride];
                let [product, p_norm, q_norm] = products(lanes, p, q);
                let user = of_users.place(rule, stride, row, u);
                let item = of_items.place(rule, stride, other, i);
                of_users.touched[user].widen(weight(at), q_norm);
                of_items.touched[item].widen(weight(at), p_norm);
                let predicted = rule.mean + u.bias + i.bias + product;
                planned.push(Planned { user, item, predicted });
            }
            for (at, (entry, plan)) in batch.iter().zip(&planned).enumerate() {
                let weight = weight(at);
                let reach = of_users.touched[plan.user].reach + of_items.touched[plan.item].reach;
                let pseudo_residual =
                    weight * rule.loss.pseudo_residual(entry.value, plan.predicted, reach);
                total += f64::from(weight) * rule.loss.of(entry.value, plan.predicted);
                let p = &users.rows[entry.user as usize * stride..][..stride];
                let q = &items.rows[entry.item as usize * stride..][..stride];
                of_users.gather(lanes, plan.user, pseudo_residual, weight, q);
                of_items.gather(lanes, plan.item, pseudo_residual, weight, p);
            }
            of_users.apply(lanes, rule, &mut users);
            of_items.apply(lanes, rule, &mut items);
            first += batch.len();
        }
        total
    }
}

/// `p·q`, `‖p‖²` and `‖q‖²`.
#[inline(always)]
fn products<L: Lanes>(lanes: L, p: &[f32], q: &[f32]) -> [f32; 3] {
    let mut sums = [lanes.zero(); 3];
    for (p, q) in p.chunks_exact(L::N).zip(q.chunks_exact(L::N)) {
        let (x, y) = (lanes.load(p), lanes.load(q));
        sums[0] = lanes.fma(x, y, sums[0]);
        sums[1] = lanes.fma(x, x, sums[1]);
        sums[2] = lanes.fma(y, y, sums[2]);
    }
    [lanes.sum(sums[0]), lanes.sum(sums[1]), lanes.sum(sums[2])]
}
