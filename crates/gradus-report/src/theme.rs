//! Colours, type and the stylesheets built from them.
//!
//! The page defines each colour once as a CSS variable and switches them with the theme. A standalone
//! drawing has the literal colours instead, because many SVG viewers know neither variables nor media
//! queries: those show the light theme, browsers follow the reader's choice.

/// Name, light, dark. The six series colours follow the hues of Okabe and Ito (2008), darkened for
/// white paper and lightened for dark screens until each is readable as text on its background.
const COLOURS: [(&str, &str, &str); 19] = [
    ("bg", "#ffffff", "#14171b"),
    ("panel", "#f5f6f8", "#1c2127"),
    ("ink", "#1a1d21", "#e6e9ed"),
    ("muted", "#59636e", "#9ba6b2"),
    ("rule", "#d9dde2", "#343b44"),
    ("grid", "#e6e9ed", "#292f36"),
    ("axis", "#939ca6", "#66717d"),
    ("s1", "#0067a8", "#5ab6ec"),
    ("s2", "#bf4d00", "#ff8f52"),
    ("s3", "#007d5c", "#2fc598"),
    ("s4", "#a9437f", "#e594c3"),
    ("s5", "#856000", "#e3b52b"),
    ("s6", "#4b5563", "#b9c1ca"),
    ("bar", "#9fb3c4", "#4d6578"),
    ("wash", "#cfe0ee", "#234259"),
    ("heat", "#005a94", "#74c3f3"),
    ("cold", "#b04600", "#ff9a62"),
    ("onheat", "#ffffff", "#0e1114"),
    ("void", "#eceef1", "#22272d"),
];

/// How many series colours there are.
pub(crate) const N_SERIES: usize = 6;

const FONT: &str = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif";

const CHART_SHAPE: &str = "\
.gr text{font-family:$font$;font-size:12px;font-variant-numeric:tabular-nums}\
.gr .gr-title{font-size:14px;font-weight:600}\
.gr .gr-small{font-size:11px}\
.gr .gr-strong{font-weight:600}\
.gr .gr-grid,.gr .gr-axis{stroke-width:1;fill:none;shape-rendering:crispEdges}\
.gr .gr-line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\
.gr .gr-dash{stroke-dasharray:7 4}\
.gr .gr-faint{stroke-width:1}\
.gr .gr-area{stroke:none;fill-opacity:.16}\
.gr .gr-layer{stroke:none;fill-opacity:.55}\
.gr .gr-whisker{stroke-width:1.25}\
.gr .gr-ref{fill:none;stroke-width:1.25;stroke-dasharray:4 3}\
.gr .gr-under{stroke-width:3.5;stroke-opacity:.75}\
.gr .gr-heat,.gr .gr-cold{shape-rendering:crispEdges}\
.gr .gr-lead{fill:none;stroke-width:1}\
.gr .gr-depth{fill-opacity:.055;shape-rendering:auto}\
.gr .gr-level{fill:none;stroke-width:.75;stroke-opacity:.45}\
.gr .gr-cross{stroke-width:2;stroke-linecap:round}\
.gr .gr-start{stroke-width:2}\
.gr .gr-hit{fill-opacity:0}\
.gr .gr-hit:hover{fill-opacity:.35}\
.gr .gr-dot{fill-opacity:.55}\
.gr .gr-box{stroke-width:1.25}\
.gr .gr-med{stroke-width:2.5}";

const CHART_COLOUR: &str = "\
.gr-bg{fill:$bg$}\
.gr text{fill:$ink$}\
.gr .gr-muted{fill:$muted$}\
.gr .gr-grid{stroke:$grid$}\
.gr .gr-axis{stroke:$axis$}\
.gr .gr-ref{stroke:$muted$}\
.gr .gr-diag{stroke:$ink$}\
.gr .gr-under{stroke:$bg$}\
.gr .gr-lead{stroke:$axis$}\
.gr .gr-faint{stroke:$bar$}\
.gr .gr-edge{stroke:$ink$}\
.gr .gr-whisker{stroke:$axis$}\
.gr .gr-bar{fill:$bar$}\
.gr .gr-heat{fill:$heat$}\
.gr .gr-level{stroke:$heat$}\
.gr .gr-cross{stroke:$ink$}\
.gr .gr-start{fill:$bg$;stroke:$ink$}\
.gr .gr-cold{fill:$cold$}\
.gr .gr-void{fill:$void$}\
.gr .gr-onheat{fill:$onheat$}\
.gr .gr-box{fill:$wash$;stroke:$s1$}\
.gr .gr-med{stroke:$s1$}\
.gr .gr-halo{stroke:$bg$;stroke-width:1.5}\
.gr .gr-f1{fill:$s1$}.gr .gr-f2{fill:$s2$}.gr .gr-f3{fill:$s3$}\
.gr .gr-f4{fill:$s4$}.gr .gr-f5{fill:$s5$}.gr .gr-f6{fill:$s6$}\
.gr .gr-s1{stroke:$s1$}.gr .gr-s2{stroke:$s2$}.gr .gr-s3{stroke:$s3$}\
.gr .gr-s4{stroke:$s4$}.gr .gr-s5{stroke:$s5$}.gr .gr-s6{stroke:$s6$}";

const PAGE: &str = "\
*{box-sizing:border-box}\
html{color-scheme:light dark;-webkit-text-size-adjust:100%;text-size-adjust:100%}\
body{margin:0;background:$bg$;color:$ink$;font:16px/1.55 $font$}\
main,header,footer{max-width:888px;margin:0 auto;padding:0 24px}\
header{padding-top:56px}\
h1{font-size:30px;line-height:1.2;font-weight:650;letter-spacing:-.015em;margin:0;overflow-wrap:anywhere}\
h2{font-size:20px;line-height:1.3;font-weight:650;letter-spacing:-.005em;margin:0 0 12px;\
overflow-wrap:anywhere}\
section{margin-top:44px;padding-top:20px;border-top:1px solid $rule$}\
p{margin:0 0 14px;max-width:68ch;overflow-wrap:anywhere;white-space:pre-line}\
.sub{margin:8px 0 0;font-size:17px;color:$muted$}\
.note{font-size:13.5px;color:$muted$}\
.stats{display:flex;flex-wrap:wrap;gap:1px;margin:32px 0 0;\
background:$rule$;border:1px solid $rule$;border-radius:6px;overflow:hidden}\
.stats div{flex:1 1 130px;background:$bg$;padding:14px 16px 13px;display:flex;flex-direction:column;min-width:0;\
box-shadow:0 0 0 1px $rule$}\
.stats dt{font-size:13px;color:$muted$;overflow-wrap:anywhere}\
.stats dd{margin:0;overflow-wrap:anywhere}\
.stats .v{font-size:26px;line-height:1.3;font-weight:600;letter-spacing:-.01em;\
font-variant-numeric:tabular-nums}\
.stats .long{font-size:18px;line-height:1.45}\
.stats .n{font-size:12.5px;line-height:1.4;color:$muted$}\
figure{margin:20px 0}\
figure svg{display:block;max-width:100%;height:auto}\
.narrow{display:none}\
.cols{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:0 32px;margin:20px 0}\
.cols>div>:first-child{margin-top:0}\
.cols>div>:last-child{margin-bottom:0}\
pre{margin:16px 0;padding:12px 16px;background:$panel$;border:1px solid $rule$;border-radius:6px;\
overflow-x:auto;font:13px/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;tab-size:4}\
.scroll{overflow-x:auto;margin:16px 0}\
table{border-collapse:collapse;font-size:14px;line-height:1.4;font-variant-numeric:tabular-nums;\
min-width:50%}\
caption{text-align:left;font-weight:600;padding:0 0 8px}\
th{font-weight:600;font-size:13px;color:$muted$;border-bottom:1px solid $axis$;vertical-align:bottom;\
white-space:nowrap}\
th,td{padding:6px 20px 6px 0;text-align:left}\
th:last-child,td:last-child{padding-right:4px}\
td{border-bottom:1px solid $grid$;overflow-wrap:anywhere;min-width:3em}\
.r{text-align:right;white-space:nowrap}.c{text-align:center}\
tr.hi td{font-weight:600;background:$panel$}\
.meter{display:inline-block;vertical-align:middle;width:88px;height:9px;margin-left:10px;\
text-align:left}\
.meter i{display:block;height:100%;background:$s1$}\
.meter i.neg{background:$s2$}\
footer{margin-top:52px;padding-top:16px;padding-bottom:40px;font-size:13px;color:$muted$;\
overflow-wrap:anywhere}\
@media (max-width:680px){main,header,footer{padding-left:16px;padding-right:16px}header{padding-top:28px}\
h1{font-size:25px}section{margin-top:32px}.stats div{flex-basis:40%}\
.stats .v{font-size:22px}.cols{display:block}.cols>div>:first-child{margin-top:20px}.cols>div>:last-child{margin-bottom:20px}\
.wide{display:none}.narrow{display:block}figure svg{width:100%;max-width:520px}\
th,td{padding-right:14px}.meter{width:48px}}\
@media print{body{font-size:11pt}header{padding-top:0}section{margin-top:24px}\
figure,tr,.stats div{break-inside:avoid}h2{break-after:avoid}pre{white-space:pre-wrap}\
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}";

fn filled(css: &str, colour: impl Fn(&str, &str, &str) -> String) -> String {
    COLOURS.iter().fold(css.replace("$font$", FONT), |css, (name, light, dark)| {
        css.replace(&format!("${name}$"), &colour(name, light, dark))
    })
}

/// The stylesheet of a standalone drawing. Dark colours apply on screens only: paper is white.
pub(crate) fn svg_css() -> String {
    let shape = filled(CHART_SHAPE, |_, light, _| light.to_owned());
    let light = filled(CHART_COLOUR, |_, light, _| light.to_owned());
    let dark = filled(CHART_COLOUR, |_, _, dark| dark.to_owned());
    format!("{shape}{light}@media screen and (prefers-color-scheme:dark){{{dark}}}")
}

/// The stylesheet of a page, its charts included.
pub(crate) fn page_css() -> String {
    let list = |dark: bool| -> String {
        COLOURS.iter().map(|(n, l, d)| format!("--gr-{n}:{};", if dark { d } else { l })).collect()
    };
    let rules = [PAGE, CHART_SHAPE, CHART_COLOUR].concat();
    let rules = filled(&rules, |name, _, _| format!("var(--gr-{name})"));
    format!(
        ":root{{{}}}@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}{rules}",
        list(false),
        list(true)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rgb(hex: &str) -> [f64; 3] {
        [1, 3, 5].map(|i| {
            let v = f64::from(u8::from_str_radix(&hex[i..i + 2], 16).unwrap()) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let [a, b] = [a, b].map(|c| {
            let [r, g, b] = rgb(c);
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        });
        a.max(b) / a.min(b)
    }

    /// OKLab distance after the dichromat simulations of Viénot, Brettel and Mollon (1999).
    fn distance(a: &str, b: &str, see: [[f64; 3]; 3]) -> f64 {
        let lab = |c: &str| {
            let c = rgb(c);
            let [r, g, b] = see.map(|row| (row[0] * c[0] + row[1] * c[1] + row[2] * c[2]).max(0.0));
            let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
            let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
            let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
            [
                0.210_454_255_3 * l + 0.793_617_785 * m - 0.004_072_046_8 * s,
                1.977_998_495_1 * l - 2.428_592_205 * m + 0.450_593_709_9 * s,
                0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766 * s,
            ]
        };
        let (a, b) = (lab(a), lab(b));
        (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt()
    }

    fn column(dark: bool, name: &str) -> &'static str {
        let c = COLOURS.iter().find(|c| c.0 == name).unwrap();
        if dark { c.2 } else { c.1 }
    }

    #[test]
    fn text_and_series_are_readable_on_both_backgrounds() {
        for dark in [false, true] {
            let bg = column(dark, "bg");
            for name in ["ink", "muted", "s1", "s2", "s3", "s4", "s5", "s6"] {
                let found = contrast(column(dark, name), bg);
                assert!(found >= 4.5, "{name}, dark {dark}: {found:.2}");
            }
            assert!(contrast(column(dark, "heat"), column(dark, "onheat")) >= 4.5);
        }
    }

    #[test]
    fn series_stay_apart_for_dichromats() {
        let normal = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let protan =
            [[0.112_38, 0.887_62, 0.0], [0.112_38, 0.887_62, 0.0], [0.004_01, -0.004_01, 1.0]];
        let deutan =
            [[0.292_75, 0.707_25, 0.0], [0.292_75, 0.707_25, 0.0], [-0.022_34, 0.022_34, 1.0]];
        for dark in [false, true] {
            for (sight, see) in [("normal", normal), ("protan", protan), ("deutan", deutan)] {
                // The first four carry most charts; beyond that direct labels and dashes help.
                for i in 1..=4 {
                    for j in i + 1..=4 {
                        let [a, b] = [i, j].map(|k| column(dark, &format!("s{k}")));
                        let found = distance(a, b, see);
                        assert!(found > 0.04, "s{i}/s{j}, dark {dark}, {sight}: {found:.3}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_placeholder_is_left_and_the_style_is_safe_in_xml() {
        for css in [svg_css(), page_css()] {
            assert!(!css.contains('$') && !css.contains('<') && !css.contains('&'));
            assert_eq!(css.matches('{').count(), css.matches('}').count());
        }
        assert!(!svg_css().contains("var("));
    }
}
