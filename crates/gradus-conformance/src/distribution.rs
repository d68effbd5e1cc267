//! Models that tell how probable data is, or make data or texts.

use crate::data::made;
use crate::{Check, Finding, ensure, error_text, found, quick};
use gradus_core::density::{Draw, Prefix};
use gradus_core::estimator::{AnyFitted, Estimator, Run};

/// The checks on models that tell how probable data is.
pub const DENSITY: &[Check] = &[
    Check { name: "a unit is as probable alone as among others", run: unit_by_unit },
    Check { name: "the log density of data like that of training is finite", run: finite },
];

/// The checks on models that make data.
pub const GENERATING: &[Check] = &[
    Check { name: "it draws as many as asked for, of its kind of data", run: number },
    Check { name: "a draw depends on the seed alone", run: seed },
    Check { name: "options of a draw are obeyed, or refused by name", run: draw_options },
];

/// The checks on models that make texts of texts.
pub const TRANSLATING: &[Check] = &[
    Check { name: "a text is translated alone as among others", run: text_by_text },
    Check { name: "a number of beams that is not possible is refused by number", run: beams },
];

fn text_by_text(model: &dyn Estimator) -> Finding {
    let fitted = fitted(model)?;
    let translator = found(fitted.translator())?;
    let texts = ["abc", "", "hga", "\u{e9}z", "ffffff"];
    for beams in [1, 3] {
        let all = found(translator.translate(&texts, beams))?;
        ensure!(all.len() == texts.len(), "{} of {} texts", all.len(), texts.len());
        for (text, expected) in texts.iter().zip(&all) {
            let one = found(translator.translate(&[text], beams))?;
            ensure!(one == [expected.as_str()], "{text:?} became {one:?} and {expected:?}");
        }
    }
    ensure!(found(translator.translate(&[], 1))?.is_empty(), "no texts became some");
    Ok(())
}

fn beams(model: &dyn Estimator) -> Finding {
    let fitted = fitted(model)?;
    let text = error_text(found(fitted.translator())?.translate(&["abc"], 0))?;
    ensure!(text.contains("beams") && text.contains('0'), "{text:?}");
    Ok(())
}

fn fitted(model: &dyn Estimator) -> Result<AnyFitted, String> {
    found(model.fit(&quick(model), made(model, 90, 1)?.as_ref(), None, &Run::default()))
}

fn unit_by_unit(model: &dyn Estimator) -> Finding {
    let (fitted, data) = (fitted(model)?, made(model, 20, 2)?);
    let density = found(fitted.density())?;
    let all = found(density.log_density(data.as_ref()))?;
    ensure!(all.len() == data.len(), "{} of {} units", all.len(), data.len());
    for unit in 0..data.len() as u32 {
        let one = found(density.log_density(data.select(&[unit]).as_ref()))?;
        let off = (one[0] - all[unit as usize]).abs();
        ensure!(
            off <= 1e-9 * all[unit as usize].abs().max(1.0),
            "unit {unit} depends on the others"
        );
    }
    Ok(())
}

fn finite(model: &dyn Estimator) -> Finding {
    let (fitted, data) = (fitted(model)?, made(model, 20, 3)?);
    let density = found(fitted.density())?;
    let all = found(density.log_density(data.as_ref()))?;
    ensure!(all.iter().all(|log| log.is_finite()), "a log density is not finite");
    Ok(())
}

fn number(model: &dyn Estimator) -> Finding {
    let fitted = fitted(model)?;
    let generator = found(fitted.generator())?;
    for n in [0, 1, 7] {
        let data = found(generator.generate(n, 1))?;
        ensure!(data.len() == n, "{n} were asked for, {} came", data.len());
        ensure!(data.kind() == model.data().name(), "it makes {}", data.kind());
    }
    Ok(())
}

fn draw_options(model: &dyn Estimator) -> Finding {
    let fitted = fitted(model)?;
    let generator = found(fitted.generator())?;
    let plain = found(generator.draw(&Draw::new(5, 1)))?;
    let generated = found(generator.generate(5, 1))?;
    ensure!(plain.fingerprint() == generated.fingerprint(), "a draw without options is another");
    let data = made(model, 5, 2)?;
    let complete = Some(Prefix { data: data.as_ref(), keep: 0.5 });
    let plain = Draw::new(3, 1);
    for (name, request) in [
        ("steps", Draw { steps: Some(2), ..plain }),
        ("guidance", Draw { guidance: Some(1.0), ..plain }),
        ("temperature", Draw { temperature: Some(0.5), ..plain }),
        ("complete", Draw { complete, ..plain }),
        ("class", Draw { class: Some("no such class"), ..plain }),
    ] {
        match generator.draw(&request) {
            Ok(data) => {
                ensure!(data.len() == 3, "{name}: 3 were asked for, {} came", data.len());
            }
            Err(error) => {
                let text = error.to_string();
                ensure!(text.contains(name), "{name} is not in {text:?}");
            }
        }
    }
    for (name, request) in [
        ("temperature", Draw { temperature: Some(-1.0), ..plain }),
        ("steps", Draw { steps: Some(0), ..plain }),
        ("guidance", Draw { guidance: Some(f64::NAN), ..plain }),
    ] {
        let text = error_text(generator.draw(&request))?;
        ensure!(text.contains(name), "{name} is not in {text:?}");
    }
    Ok(())
}

fn seed(model: &dyn Estimator) -> Finding {
    let fitted = fitted(model)?;
    let draw = |seed| -> Result<u64, String> {
        Ok(found(found(fitted.generator())?.generate(20, seed))?.fingerprint())
    };
    ensure!(draw(1)? == draw(1)?, "the same seed gave other data");
    ensure!(draw(1)? != draw(2)?, "another seed gave the same data");
    Ok(())
}
