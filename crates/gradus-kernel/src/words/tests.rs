use super::*;
use crate::testing::{Random, SIZES};

#[test]
fn the_sigmoid_is_that_of_the_library() {
    for at in -2000..=2000 {
        let x = at as f32 * 0.05;
        let want = 1.0 / (1.0 + (-f64::from(x)).exp());
        let got = f64::from(sigmoid(x));
        let off = (got - want).abs();
        assert!(off <= 5e-7 * want + 1e-34, "{x}: {got} and not {want}");
    }
}

fn steps(random: &mut Random, n: usize, rows: usize, most: (usize, usize)) -> WordSteps {
    let mut steps = WordSteps::default();
    for _ in 0..n {
        for _ in 0..1 + random.below(most.0) {
            steps.inputs.push(random.below(rows) as u32);
        }
        // Outputs of a chunk must differ for the slow form below; those of words do but for rare draws.
        let start = random.below(rows);
        for o in 0..1 + random.below(most.1) {
            steps.outputs.push(((start + 3 * o) % rows) as u32);
            steps.labels.push(random.below(2) as f32);
        }
        steps.input_ends.push(steps.inputs.len() as u32);
        steps.output_ends.push(steps.outputs.len() as u32);
    }
    steps
}

/// Steps in double precision, by the formulas.
fn slow(
    steps: &WordSteps,
    k: usize,
    rate: f64,
    x: &mut [Vec<f64>],
    w: &mut [Vec<f64>],
    mean: bool,
) {
    let (mut i, mut j) = (0, 0);
    for at in 0..steps.len() {
        let xs = &steps.inputs[i..steps.input_ends[at] as usize];
        let ws = &steps.outputs[j..steps.output_ends[at] as usize];
        let labels = &steps.labels[j..steps.output_ends[at] as usize];
        (i, j) = (steps.input_ends[at] as usize, steps.output_ends[at] as usize);
        let groups: Vec<&[u32]> = if mean { vec![xs] } else { xs.chunks(INPUTS).collect() };
        for xs in groups {
            let mut rows: Vec<Vec<f64>> = xs.iter().map(|&c| x[c as usize].clone()).collect();
            if mean {
                let of = |v: usize| rows.iter().map(|row| row[v]).sum::<f64>() / rows.len() as f64;
                rows = vec![(0..k).map(of).collect()];
            }
            let start = rows.clone();
            for (ws, labels) in ws.chunks(OUTPUTS).zip(labels.chunks(OUTPUTS)) {
                let old = rows.clone();
                let outputs: Vec<Vec<f64>> = ws.iter().map(|&o| w[o as usize].clone()).collect();
                for (o, output) in outputs.iter().enumerate() {
                    let y = f64::from(labels[o]);
                    for c in 0..old.len() {
                        let dot: f64 = old[c].iter().zip(output).map(|(a, b)| a * b).sum();
                        let g = rate * (y - 1.0 / (1.0 + (-dot).exp()));
                        for v in 0..k {
                            rows[c][v] += g * output[v];
                            w[ws[o] as usize][v] += g * old[c][v];
                        }
                    }
                }
                if !mean {
                    // Rows that are there twice move twice.
                    for (c, &row) in xs.iter().enumerate() {
                        for v in 0..k {
                            x[row as usize][v] += rows[c][v] - old[c][v];
                        }
                    }
                    rows = xs.iter().map(|&row| x[row as usize].clone()).collect();
                }
            }
            if mean {
                for &row in xs {
                    for v in 0..k {
                        x[row as usize][v] += rows[0][v] - start[0][v];
                    }
                }
            }
        }
    }
}

#[test]
fn steps_are_those_of_the_formulas_at_every_level() {
    for k in SIZES {
        for mean in [false, true] {
            let mut random = Random(k as u64);
            let (x, w) = (random.rows(40, k, 0.5), random.rows(40, k, 0.5));
            let steps = steps(&mut random, 30, 40, (27, 13));
            let wide = |rows: &super::super::Rows| -> Vec<Vec<f64>> {
                (0..40)
                    .map(|at| rows.row(at)[..k].iter().map(|&x| f64::from(x)).collect())
                    .collect()
            };
            let (mut want_x, mut want_w) = (wide(&x), wide(&w));
            slow(&steps, k, 0.05, &mut want_x, &mut want_w, mean);
            for level in Level::available() {
                let (mut x, mut w) = (x.clone(), w.clone());
                let (stride, run) = (x.stride(), if mean { cbow_steps } else { skipgram_steps });
                let loss = run(level, stride, 0.05, x.as_mut_slice(), w.as_mut_slice(), &steps);
                assert!(loss.n > 0 && loss.loss > 0.0);
                for (rows, want) in [(&x, &want_x), (&w, &want_w)] {
                    for at in 0..40 {
                        for v in 0..k {
                            let off = (f64::from(rows.row(at)[v]) - want[at][v]).abs();
                            assert!(off < 2e-4, "{level} k={k} mean={mean} {at} {v}: {off}");
                        }
                        assert!(rows.row(at)[k..].iter().all(|&x| x == 0.0), "padding stays zero");
                    }
                }
            }
        }
    }
}

/// One input against rows that stay takes the steps of skip-gram, up to what the outputs would have moved.
#[test]
fn an_input_alone_moves_as_in_skipgram() {
    for k in SIZES {
        let mut random = Random(k as u64);
        let (x, w) = (random.rows(1, k, 0.5), random.rows(40, k, 0.5));
        for n in [0, 1, 7, OUTPUTS] {
            let mut steps =
                WordSteps { inputs: vec![0], input_ends: vec![1], ..WordSteps::default() };
            steps.outputs.extend((0..n as u32).map(|at| 3 * at));
            steps.labels.extend((0..n).map(|at| (at % 2) as f32));
            steps.output_ends.push(n as u32);
            for level in Level::available() {
                let (mut want, mut moved) = (x.clone(), w.clone());
                let (to, from) = (want.as_mut_slice(), moved.as_mut_slice());
                skipgram_steps(level, x.stride(), 0.05, to, from, &steps);
                let mut got = x.clone();
                let rows = (w.as_slice(), steps.outputs.as_slice());
                let labels = &steps.labels;
                infer_steps(level, x.stride(), 0.05, got.as_mut_slice(), rows, labels);
                for (got, want) in got.as_slice().iter().zip(want.as_slice()) {
                    assert!((got - want).abs() < 1e-6, "{level} {k} {n}");
                }
            }
        }
        // More rows are taken in parts, one after the other.
        let indices: Vec<u32> = (0..20).collect();
        let labels = [1.0; 20];
        let (mut whole, mut parts) = (x.clone(), x.clone());
        let run = |x: &mut super::super::Rows, at: std::ops::Range<usize>| {
            let rows = (w.as_slice(), &indices[at.clone()]);
            infer_steps(Level::best(), w.stride(), 0.1, x.as_mut_slice(), rows, &labels[at]);
        };
        run(&mut whole, 0..20);
        [0..8, 8..16, 16..20].into_iter().for_each(|part| run(&mut parts, part));
        assert_eq!(whole, parts);
    }
}

#[test]
fn what_is_taken_away_is_added_again() {
    let mut random = Random(9);
    let rows = random.rows(30, 33, 1.0);
    let stride = rows.stride();
    let indices: Vec<u32> = (0..12).map(|at| 10 + (at * 7) % 20).collect();
    for level in Level::available() {
        let changed = random.rows(12, 33, 1.0);
        let mut copies = changed.clone();
        subtract_rows(level, stride, rows.as_slice(), &indices, copies.as_mut_slice());
        let mut all = rows.clone();
        let places: Vec<u32> = (0..12).rev().collect();
        let part = &mut all.as_mut_slice()[10 * stride..];
        let scales = [1.0; 12];
        add_rows(level, stride, (part, 10), &indices, (&places, &scales), copies.as_slice());
        for (at, &row) in indices.iter().enumerate() {
            for (got, want) in all.row(row as usize).iter().zip(changed.row(at)) {
                assert!((got - want).abs() < 1e-6, "{level}");
            }
        }
        assert_eq!(all.row(3), rows.row(3));
    }
}

#[test]
#[should_panic(expected = "outputs that are there")]
fn a_row_that_is_not_there_panics() {
    let mut rows = Random(1).rows(2, 5, 1.0);
    let mut others = rows.clone();
    let steps = WordSteps {
        inputs: vec![0],
        input_ends: vec![1],
        outputs: vec![2],
        labels: vec![1.0],
        output_ends: vec![1],
    };
    skipgram_steps(Level::best(), 16, 0.1, rows.as_mut_slice(), others.as_mut_slice(), &steps);
}
