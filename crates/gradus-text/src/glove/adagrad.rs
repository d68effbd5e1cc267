//! The factorisation by stochastic gradient descent with AdaGrad, in blocks.

use super::Glove;
use super::grid::{self, Grid, Partition};
use super::problem::{Problem, Sides, read_rows, start, write_rows};
use gradus_base::Result;
use gradus_base::random::Stream;
use gradus_core::iterate::{self, Step, Watch};
use gradus_file::{Reader, Writer};
use gradus_kernel::sgd::{Extra, ResidualLoss, StepRule, sweep};
use gradus_kernel::{Level, Rows};

/// Vectors start this small: the biases explain what they can before the vectors do.
const START: f64 = 0.1;

/// The solver, bound to its data.
pub(super) struct AdaGrad<'a> {
    params: &'a Glove,
    problem: &'a Problem,
    grid: Grid,
}

/// The state, which changes from epoch to epoch, in the order of the partitions.
pub(super) struct State {
    epoch: usize,
    words: Rows,
    contexts: Rows,
    of_words: Vec<Extra>,
    of_contexts: Vec<Extra>,
}

impl Clone for State {
    fn clone(&self) -> Self {
        Self {
            epoch: self.epoch,
            words: self.words.clone(),
            contexts: self.contexts.clone(),
            of_words: self.of_words.clone(),
            of_contexts: self.of_contexts.clone(),
        }
    }

    /// Copies into the memory that is there.
    fn clone_from(&mut self, source: &Self) {
        self.epoch = source.epoch;
        self.words.clone_from(&source.words);
        self.contexts.clone_from(&source.contexts);
        self.of_words.clone_from(&source.of_words);
        self.of_contexts.clone_from(&source.of_contexts);
    }
}

impl<'a> AdaGrad<'a> {
    pub(super) fn new(params: &'a Glove, problem: &'a Problem) -> Self {
        let logs = &problem.logs;
        let n = logs.n_rows();
        let groups = grid::groups(n, logs.nnz());
        let partition = |sizes: &[usize], purpose: &str| {
            Partition::new(sizes, groups, &mut Stream::new(params.seed, purpose, 0))
        };
        let of_words: Vec<usize> = (0..n).map(|row| logs.range(row).len()).collect();
        let mut of_contexts = vec![0; n];
        logs.indices().iter().for_each(|&column| of_contexts[column as usize] += 1);
        let words = partition(&of_words, "glove.words");
        let contexts = partition(&of_contexts, "glove.contexts");
        let grid = Grid::new(logs, words, contexts, |log| problem.weight(log));
        Self { params, problem, grid }
    }

    /// The rows in the order of the words.
    pub(super) fn finish(&self, state: &State) -> Sides {
        let ordered = |partition: &Partition, rows: &Rows| {
            let mut ordered = Rows::zeros(rows.n_rows(), rows.k());
            for (row, &position) in partition.positions.iter().enumerate() {
                ordered.row_mut(row).copy_from_slice(rows.row(position as usize));
            }
            ordered
        };
        let biases = |partition: &Partition, extras: &[Extra]| {
            partition.positions.iter().map(|&at| extras[at as usize].bias).collect()
        };
        Sides {
            words: ordered(&self.grid.words, &state.words),
            contexts: ordered(&self.grid.contexts, &state.contexts),
            word_biases: biases(&self.grid.words, &state.of_words),
            context_biases: biases(&self.grid.contexts, &state.of_contexts),
        }
    }
}

impl iterate::Solver for AdaGrad<'_> {
    type State = State;

    fn start(&self, _restart: usize) -> Result<State> {
        let sides = start(self.params, self.problem, START);
        let placed = |partition: &Partition, rows: &Rows, biases: &[f32]| {
            let mut placed = Rows::zeros(rows.n_rows(), rows.k());
            let mut extras = vec![Extra::default(); rows.n_rows()];
            for (position, &row) in partition.rows.iter().enumerate() {
                placed.row_mut(position).copy_from_slice(rows.row(row as usize));
                extras[position].bias = biases[row as usize];
            }
            (placed, extras)
        };
        let (words, of_words) = placed(&self.grid.words, &sides.words, &sides.word_biases);
        let (contexts, of_contexts) =
            placed(&self.grid.contexts, &sides.contexts, &sides.context_biases);
        Ok(State { epoch: 0, words, contexts, of_words, of_contexts })
    }

    fn step(&self, state: &mut State, watch: &Watch<'_>) -> Result<Step> {
        let rule = StepRule {
            k: self.params.dimension,
            loss: ResidualLoss::Squared,
            mean: 0.0,
            learning_rate: self.params.learning_rate as f32,
            adaptive: true,
            biases: true,
            batch: 1,
        };
        let groups = self.grid.groups();
        let order =
            Stream::new(self.params.seed, "glove.rounds", state.epoch as u64).permutation(groups);
        let level = Level::best();
        let mut next = state.clone();
        let mut loss = 0.0;
        let whole = self.grid.rounds(
            (&mut next.words, &mut next.of_words),
            (&mut next.contexts, &mut next.of_contexts),
            &order,
            |words, contexts, entries, weights| {
                sweep(level, &rule, words, contexts, entries, Some(weights))
            },
            |round, losses| {
                loss += losses.iter().sum::<f64>();
                watch.within((round + 1) as f64 / groups as f64);
                !watch.stopped()
            },
        );
        if !whole {
            return Ok(Step::Stopped);
        }
        next.epoch += 1;
        *state = next;
        Ok(Step::Done(self.problem.cost(loss)))
    }

    fn validate(&self, _state: &State) -> Option<f64> {
        None
    }

    fn write_state<'b>(&self, state: &'b State, prefix: &str, file: &mut Writer<'b>) {
        file.set(&format!("{prefix}epoch"), &state.epoch);
        for (name, rows, extras) in [
            ("words", &state.words, &state.of_words),
            ("contexts", &state.contexts, &state.of_contexts),
        ] {
            write_rows(file, &format!("{prefix}{name}"), rows);
            let flat = extras.iter().flat_map(|e| [e.bias, e.squares, e.bias_squares]).collect();
            file.tensor_owned(&format!("{prefix}{name}.extras"), &[extras.len(), 3], flat);
        }
    }

    fn read_state(&self, prefix: &str, file: &mut Reader) -> Result<State> {
        let epoch = file.get(&format!("{prefix}epoch"))?;
        let (n, k) = (self.problem.logs.n_rows(), self.params.dimension);
        let mut side = |name: &str| -> Result<(Rows, Vec<Extra>)> {
            let rows = read_rows(file, &format!("{prefix}{name}"), n, k)?;
            let flat = file.finite::<f32>(&format!("{prefix}{name}.extras"), &[n, 3])?;
            let extra = |e: &[f32]| Extra {
                bias: e[0],
                squares: e[1],
                bias_squares: e[2],
                ..Extra::default()
            };
            Ok((rows, flat.chunks_exact(3).map(extra).collect()))
        };
        let (words, of_words) = side("words")?;
        let (contexts, of_contexts) = side("contexts")?;
        Ok(State { epoch, words, contexts, of_words, of_contexts })
    }
}
