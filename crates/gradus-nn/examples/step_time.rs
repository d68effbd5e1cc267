//! Times steps of training: forward, backward and AdamW. The networks are those of `bench/suites/nn.py`.
//!
//! `step_time mlp|cnn|gpt|gpt-large|unet THREADS SECONDS [cpu|gpu]` prints the median seconds of a step, the seconds of all threads for a step, and the
//! last loss as JSON.

use burn::tensor::{Device, Tensor};
use gradus_base::memory::LargePages;
use gradus_base::random::Stream;
use gradus_data::ImageShape;
use gradus_nn::device::{DeviceKind, tensor};
use gradus_nn::diffusion::{DenoiserArchitecture, DenoiserLayers, DenoiserNetwork};
use gradus_nn::layers::pool::{max_pool, mean_pool};
use gradus_nn::layers::{
    Activation, BatchNorm, Block, BlockShape, Conv2d, LayerNorm, Linear, Mask, Pass, Window,
};
use gradus_nn::ops;
use gradus_nn::optimizer::{OptimizerKind, StepSettings, Trained};
use gradus_nn::weights::{Init, Layout, Role, WeightId, Weights};
use mimalloc::MiMalloc;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: LargePages<MiMalloc> = LargePages::over(MiMalloc);

/// A network and a batch: the mean loss from weights.
type Loss = Box<dyn Fn(&Weights, &Pass) -> Tensor<1>>;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize| arguments.get(at).and_then(|word| word.parse::<f64>().ok());
    let (Some(name), Some(threads), Some(seconds)) = (arguments.get(1), number(2), number(3))
    else {
        panic!("step_time mlp|cnn|gpt|gpt-large|unet THREADS SECONDS [cpu|gpu]");
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize);
    pool.build_global().expect("the threads");
    let mut layout = Layout::new();
    let gpu = arguments.get(4).is_some_and(|device| device == "gpu");
    let kind = if gpu { DeviceKind::Gpu } else { DeviceKind::Cpu };
    let device = kind.open().expect("the device");
    let loss = match name.as_str() {
        "mlp" => mlp(&mut layout, device.clone()),
        "cnn" => cnn(&mut layout, device.clone()),
        "gpt" => gpt(&mut layout, (12, 64, 128, 4, 4)),
        "gpt-large" => gpt(&mut layout, (16, 256, 384, 6, 6)),
        "unet" => unet(&mut layout, device.clone()),
        _ => panic!("{name} is none of mlp, cnn, gpt, gpt-large and unet"),
    };
    let mut trained = Trained::new(Weights::init(&layout, 1, &device));
    let settings = StepSettings {
        kind: OptimizerKind::Adam,
        rate: 1e-3,
        weight_decay: 0.01,
        beta1: 0.9,
        beta2: 0.999,
        clip_norm: 0.0,
    };
    let mut last = 0.0;
    let mut step = |trained: &mut Trained| {
        let pass = Pass::training(Stream::new(trained.steps, "steps", 0));
        let tracked = trained.weights.tracked(&layout);
        let loss = loss(&tracked, &pass);
        let mut found = loss.backward();
        let gradients = tracked.gradients(&mut found);
        last = loss.into_scalar::<f32>();
        drop(tracked);
        pass.update(&mut trained.weights);
        trained.step(&layout, gradients, &settings);
    };
    (0..5).for_each(|_| step(&mut trained));
    let (started, before, mut times) = (Instant::now(), processor_seconds(), Vec::new());
    while times.len() < 5 || started.elapsed().as_secs_f64() < seconds {
        let started = Instant::now();
        step(&mut trained);
        times.push(started.elapsed().as_secs_f64());
    }
    let processor = (processor_seconds() - before) / times.len() as f64;
    times.sort_by(f64::total_cmp);
    println!(
        "{{\"seconds\": {}, \"processor\": {processor}, \"steps\": {}, \"loss\": {last}}}",
        times[times.len() / 2],
        times.len()
    );
}

/// The seconds that all threads have worked so far; 0 where the system does not tell.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind = text.rsplit(')').next().unwrap_or_default();
    let fields: Vec<f64> =
        behind.split_whitespace().skip(11).filter_map(|word| word.parse().ok()).collect();
    // Ticks of a hundredth of a second.
    fields.iter().take(2).sum::<f64>() / 100.0
}

/// Numbers as the other side of the comparison has them: their distribution matters, not each of them.
fn noise(n: usize) -> Vec<f32> {
    let mut stream = Stream::new(5, "noise", 0);
    (0..n).map(|_| stream.normal() as f32).collect()
}

fn classes(n: usize, below: usize) -> Vec<u32> {
    let mut stream = Stream::new(6, "classes", 0);
    (0..n).map(|_| (stream.next_u64() % below as u64) as u32).collect()
}

fn mlp(layout: &mut Layout, device: Device) -> Loss {
    let n = 256;
    let layers: Vec<Linear> = [(784, 512), (512, 512), (512, 10)]
        .into_iter()
        .enumerate()
        .map(|(at, sizes)| Linear::new(layout, &format!("{at}"), sizes, Init::he(sizes.0), true))
        .collect();
    let (x, y, weights) = (noise(n * 784), classes(n, 10), vec![1.0 / n as f32; n]);
    Box::new(move |w, _| {
        let mut x = tensor(x.clone(), [n, 784], &device);
        for (at, layer) in layers.iter().enumerate() {
            let kind = if at < 2 { Activation::Relu } else { Activation::Identity };
            x = layer.forward_activated(w, x, kind);
        }
        ops::cross_entropy(x, &y, &weights)
    })
}

fn cnn(layout: &mut Layout, device: Device) -> Loss {
    let n = 128;
    let parts: Vec<(Conv2d, BatchNorm)> = [(1, 32), (32, 64), (64, 128)]
        .into_iter()
        .enumerate()
        .map(|(at, sizes)| {
            let (window, init) = (Window::same(3), Init::he(9 * sizes.0));
            let conv = Conv2d::new(layout, &format!("conv.{at}"), sizes, window, init, false);
            (conv, BatchNorm::new(layout, &format!("norm.{at}"), sizes.1))
        })
        .collect();
    let output = Linear::new(layout, "fc", (128, 10), Init::fan_in(128), true);
    let (x, y, weights) = (noise(n * 784), classes(n, 10), vec![1.0 / n as f32; n]);
    Box::new(move |w, pass| {
        let mut x = tensor(x.clone(), [n, 28, 28, 1], &device);
        for (at, (conv, norm)) in parts.iter().enumerate() {
            x = if at > 0 { max_pool(x) } else { x };
            x = conv.forward(w, x);
            let [n, height, width, channels] = x.dims();
            let rows = x.reshape([n * height * width, channels]);
            let rows = norm.forward_activated(w, rows, Activation::Relu, pass);
            x = rows.reshape([n, height, width, channels]);
        }
        ops::cross_entropy(output.forward(w, mean_pool(x)), &y, &weights)
    })
}

/// The network of a diffusion model of images of 28 × 28, as its defaults are.
fn unet(layout: &mut Layout, device: Device) -> Loss {
    let (n, d) = (32, 784);
    let shape = ImageShape { height: 28, width: 28, channels: 1 };
    let layers = DenoiserLayers::Unet { shape, channels: vec![32, 64, 128], depth: 1, heads: 4 };
    let architecture = DenoiserArchitecture { inputs: d, classes: 0, layers, dropout: 0.0 };
    let network = DenoiserNetwork::new(&architecture, layout).expect("the network");
    let (x, y, weights) = (noise(n * d), noise(n * d), vec![2.0 / (n * d) as f32; n]);
    let times: Vec<f64> = (0..n).map(|at| at as f64 / n as f64).collect();
    Box::new(move |w, pass| {
        let x = tensor(x.clone(), [n, d], &device);
        ops::squared_error(network.forward(w, x, &times, &[], pass), y.clone(), &weights)
    })
}

/// A language model of so many windows, positions, features, heads and blocks.
fn gpt(
    layout: &mut Layout,
    (n, length, d, heads, depth): (usize, usize, usize, usize, usize),
) -> Loss {
    let vocabulary = 65;
    let mut table = |name: &str, rows: usize| -> WeightId {
        layout.add(name, &[rows, d], Init::Normal(0.02), Role::Decayed)
    };
    let (tokens, places) = (table("tokens", vocabulary), table("places", length));
    let shape = BlockShape {
        features: d,
        heads,
        hidden: 4 * d,
        depth,
        activation: Activation::Gelu,
        dropout: 0.0,
        cross: false,
    };
    let blocks: Vec<Block> =
        (0..depth).map(|at| Block::new(layout, &format!("blocks.{at}"), &shape)).collect();
    let norm = LayerNorm::new(layout, "norm", d);
    let output = Linear::new(layout, "output", (d, vocabulary), Init::Normal(0.02), false);
    let (x, y) = (classes(n * length, vocabulary), classes(n * length, vocabulary));
    let weights = vec![1.0 / (n * length) as f32; n * length];
    let at: Vec<u32> = (0..length as u32).collect();
    Box::new(move |w, pass| {
        let x = ops::embedding(w.get(tokens, [vocabulary, d]), &x).reshape([n, length, d]);
        let places = ops::embedding(w.get(places, [length, d]), &at);
        let mut x = x + places.unsqueeze::<3>();
        for block in &blocks {
            x = block.forward(w, x, &Mask::causal(), None, pass);
        }
        let x = norm.forward(w, x.reshape([n * length, d]));
        ops::cross_entropy(output.forward(w, x), &y, &weights)
    })
}
