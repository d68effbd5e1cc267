//! Files of every past format keep loading. Never change a file in `tests/files`; add new ones.

use gradus::prelude::*;

#[test]
fn format_1_als() {
    let fitted = gradus::load("tests/files/als-format-1.gradus").unwrap();
    assert_eq!(fitted.kind, "als");
    assert_eq!(fitted.params["rank"], 2);
    assert_eq!(fitted.report.iterations, 2);
    let model = fitted.recommend().unwrap();
    assert_eq!((model.users().len(), model.items().len()), (6, 5));
    // The prediction as it was when the file was written.
    let predicted = model.predict(&[(Some(0), Some(0))])[0];
    assert!((predicted - EXPECTED).abs() < 1e-4, "{predicted}");
    assert_eq!(
        model
            .top(&Recipient::User(0), 9, &Filter { include_seen: true, ..Filter::default() })
            .unwrap()
            .len(),
        5
    );
}

const EXPECTED: f32 = 3.1475;
