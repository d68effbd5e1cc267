//! Pictures and arrays, whole and broken.

use super::*;
use std::fs;

fn shape(height: usize, width: usize, channels: usize) -> ImageShape {
    ImageShape { height, width, channels }
}

fn read(path: &Path) -> Result<Images> {
    Images::read(path, &mut Vec::new())
}

fn said(path: &Path) -> String {
    read(path).unwrap_err().to_string()
}

/// A PNG file of one chunk of pixels, which are given with the filter before each row.
fn png(
    width: u32,
    height: u32,
    [depth, colour, interlace]: [u8; 3],
    palette: &[u8],
    rows: &[u8],
) -> Vec<u8> {
    let mut file = png::SIGNATURE.to_vec();
    let mut chunk = |kind: &[u8], data: &[u8]| {
        file.extend((data.len() as u32).to_be_bytes());
        let body = [kind, data].concat();
        let mut crc = flate2::Crc::new();
        crc.update(&body);
        file.extend(&body);
        file.extend(crc.sum().to_be_bytes());
    };
    let head = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, colour, 0, 0, interlace]]
        .concat();
    chunk(b"IHDR", &head);
    if !palette.is_empty() {
        chunk(b"PLTE", palette);
    }
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
    std::io::Write::write_all(&mut packed, rows).unwrap();
    chunk(b"IDAT", &packed.finish().unwrap());
    chunk(b"IEND", b"");
    file
}

fn pixels_of(file: &[u8]) -> (ImageShape, Pixels) {
    let picture = png::decode(file).unwrap();
    (picture.shape, picture.pixels)
}

#[test]
fn png_of_every_kind() {
    // Grey, with every filter: none, left, above, mean, Paeth.
    let rows = [0, 10, 20, 1, 5, 5, 2, 1, 1, 3, 2, 2, 4, 1, 1];
    let (found, pixels) = pixels_of(&png(2, 5, [8, 0, 0], &[], &rows));
    assert_eq!(found, shape(5, 2, 1));
    // By hand: 5, 5+5; 5+1, 10+1; 2+6/2, 2+(5+11)/2; 1+5, 1+paeth(6, 10, 5).
    assert_eq!(pixels, Pixels::Bytes(vec![10, 20, 5, 10, 6, 11, 5, 10, 6, 11]));
    let (found, pixels) = pixels_of(&png(1, 1, [8, 2, 0], &[], &[0, 1, 2, 3]));
    assert_eq!((found, pixels), (shape(1, 1, 3), Pixels::Bytes(vec![1, 2, 3])));
    let (found, pixels) = pixels_of(&png(1, 1, [8, 6, 0], &[], &[0, 1, 2, 3, 200]));
    assert_eq!((found, pixels), (shape(1, 1, 3), Pixels::Bytes(vec![1, 2, 3])));
    let (found, pixels) = pixels_of(&png(1, 1, [8, 4, 0], &[], &[0, 9, 200]));
    assert_eq!((found, pixels), (shape(1, 1, 1), Pixels::Bytes(vec![9])));
    let (found, pixels) =
        pixels_of(&png(3, 1, [2, 3, 0], &[1, 2, 3, 4, 5, 6], &[0, 0b01_00_01_00]));
    assert_eq!((found, pixels), (shape(1, 3, 3), Pixels::Bytes(vec![4, 5, 6, 1, 2, 3, 4, 5, 6])));
    let (_, pixels) = pixels_of(&png(9, 1, [1, 0, 0], &[], &[0, 0b1010_0000, 0b1000_0000]));
    assert_eq!(pixels, Pixels::Bytes(vec![255, 0, 255, 0, 0, 0, 0, 0, 255]));
    let (_, pixels) = pixels_of(&png(1, 1, [16, 0, 0], &[], &[0, 255, 255]));
    assert_eq!(pixels, Pixels::Floats(vec![1.0]));
    // Interlaced: of 2 × 2 pixels passes 1, 6 and 7 have some.
    let (_, pixels) = pixels_of(&png(2, 2, [8, 0, 1], &[], &[0, 1, 0, 2, 0, 3, 4]));
    assert_eq!(pixels, Pixels::Bytes(vec![1, 2, 3, 4]));
}

#[test]
fn broken_pictures_are_errors() {
    let fine = png(2, 2, [8, 0, 0], &[], &[0, 1, 2, 0, 3, 4]);
    for end in 0..fine.len() {
        assert!(png::decode(&fine[..end]).is_err(), "cut at {end}");
    }
    for at in 8..fine.len() {
        let mut bad = fine.clone();
        bad[at] ^= 1;
        assert!(png::decode(&bad).is_err(), "changed at {at}");
    }
    for (file, part) in [
        (png(2, 2, [8, 0, 0], &[], &[0, 1, 2]), "ends within"),
        (png(2, 1, [8, 0, 0], &[], &[7, 1, 2]), "filter 7"),
        (png(2, 1, [3, 0, 0], &[], &[0, 1, 2]), "colour type"),
        (png(0, 1, [8, 0, 0], &[], &[0]), "no pixels"),
        (png(1 << 30, 1 << 30, [8, 0, 0], &[], &[0]), "too large"),
        (png(1, 1, [8, 3, 0], &[1, 2, 3], &[0, 1]), "palette"),
    ] {
        let error = png::decode(&file).err().unwrap();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn pgm_and_ppm_as_text_and_as_bytes() {
    let decode = |bytes: &[u8]| {
        assert!(pnm::is_pnm(bytes));
        pnm::decode(bytes).map(|picture| (picture.shape, picture.pixels))
    };
    let grey = Pixels::Bytes(vec![0, 128, 255, 7, 8, 9]);
    assert_eq!(
        decode(b"P2 # grey\n3 2\n255\n0 128 255\n7 8 9\n").unwrap(),
        (shape(2, 3, 1), grey.clone())
    );
    assert_eq!(decode(b"P5\n3 2\n255\n\x00\x80\xff\x07\x08\x09").unwrap(), (shape(2, 3, 1), grey));
    assert_eq!(decode(b"P3 1 1 15 15 0 3").unwrap().1, Pixels::Floats(vec![1.0, 0.0, 0.2]));
    assert_eq!(
        decode(b"P6 1 1 255\n\x01\x02\x03").unwrap(),
        (shape(1, 1, 3), Pixels::Bytes(vec![1, 2, 3]))
    );
    assert_eq!(decode(b"P5 1 1 65535\n\xff\xff").unwrap().1, Pixels::Floats(vec![1.0]));
    for (bytes, part) in [
        (&b"P5\n3 2\n255\n\x00"[..], "ends within"),
        (b"P2 2 1 255 1", "ends within"),
        (b"P2 2 1 255 1    x", "pixels: there is something else"),
        (b"P2 x 1 255 1", "width"),
        (b"P2 1 1 0 1", "largest value is 0"),
        (b"P2 1 1 9 10", "above its largest"),
        (b"P2 0 1 9 10", "no pixels"),
        (b"P5 99999999 99999999 255 ", "too large"),
    ] {
        let error = decode(bytes).err().unwrap();
        assert!(error.contains(part), "{error}");
    }
}

/// A grey picture of 8 × 8, whose only coefficient is the mean: 16 × 4 / 8 above the middle.
#[rustfmt::skip]
const JPEG: &[u8] = &[
    0xff, 0xd8, 0xff, 0xdb, 0, 67, 0, // 64 quantisers
    16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
    16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
    16, 16, 16, 16,
    0xff, 0xc0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0, // 8 × 8, one colour
    0xff, 0xc4, 0, 20, 0x00, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, // DC: the code 0 is 3 bits
    0xff, 0xc4, 0, 20, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // AC: the code 0 is the end
    0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, // The scan: 0, then 100 for 4, then 0; the rest is padding.
    0b0100_0111, 0xff, 0xd9,
];

#[test]
fn a_jpeg_by_hand() {
    let picture = jpeg::decode(JPEG).unwrap();
    assert_eq!(picture.shape, shape(8, 8, 1));
    assert_eq!(picture.pixels, Pixels::Bytes(vec![136; 64]));
    for end in 0..JPEG.len() {
        assert!(jpeg::decode(&JPEG[..end]).is_err(), "cut at {end}");
    }
    // Any damage is an error or another picture, never a panic.
    for at in 2..JPEG.len() {
        for change in [1, 0x10, 0x80, 0xff] {
            let mut bad = JPEG.to_vec();
            bad[at] ^= change;
            let _ = jpeg::decode(&bad);
        }
    }
}

#[test]
fn a_folder_of_pictures_has_sub_folders_as_labels() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    assert!(!Images::are_at(root));
    assert!(said(root).contains("no pictures"));
    fs::create_dir(root.join("cat")).unwrap();
    fs::create_dir(root.join("dog")).unwrap();
    fs::write(root.join("dog/1.pgm"), "P2 2 1 255 1 2").unwrap();
    fs::write(root.join("cat/b.png"), png(2, 1, [8, 0, 0], &[], &[0, 3, 4])).unwrap();
    fs::write(root.join("cat/a.PGM"), "P2 2 1 4 0 4").unwrap();
    fs::write(root.join("notes.txt"), "no picture").unwrap();
    assert!(Images::are_at(root));
    let mut remarks = Vec::new();
    let images = Images::read(root, &mut remarks).unwrap();
    assert!(remarks[0].contains("1 files are no pictures"), "{remarks:?}");
    assert_eq!((images.len(), images.shape()), (3, shape(1, 2, 1)));
    assert_eq!(images.labels().unwrap(), ["cat", "cat", "dog"]);
    let x = images.features().unwrap();
    assert_eq!(x.row(0), [0.0, 1.0]);
    assert!((x[(2, 1)] - 2.0 / 255.0).abs() < 1e-7);
    let samples = images.to_samples(Some(true)).unwrap();
    assert_eq!(samples.classes().unwrap().0, [0, 0, 1]);
    assert_eq!(samples.inputs().feature_names(), ["pixel_0_0", "pixel_0_1"]);
    assert!(images.to_samples(Some(false)).unwrap_err().to_string().contains("`cat` of image 1"));
    fs::write(root.join("dog/2.pgm"), "P2 1 2 255 1 2").unwrap();
    let error = said(root);
    assert!(
        error.contains("2.pgm") && error.contains("2 × 1") && error.contains("1 × 2"),
        "{error}"
    );
    fs::write(root.join("dog/2.pgm"), "nothing").unwrap();
    assert!(said(root).contains("is no PNG"));
}

#[test]
fn idx_files_and_their_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t-images-idx3-ubyte");
    let bytes =
        [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3][..], &[0, 51, 255, 1, 2, 3]].concat();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    std::io::Write::write_all(&mut packed, &bytes).unwrap();
    for bytes in [bytes.clone(), packed.finish().unwrap()] {
        fs::write(&path, bytes).unwrap();
        assert!(Images::are_at(&path));
        let images = read(&path).unwrap();
        assert_eq!((images.len(), images.shape()), (2, shape(1, 3, 1)));
        assert_eq!(images.features().unwrap().row(0), [0.0, 0.2, 1.0]);
    }
    for end in 0..bytes.len() {
        fs::write(&path, &bytes[..end]).unwrap();
        assert!(read(&path).is_err(), "cut at {end}");
    }
    for (at, value, part) in
        [(2, 7, "no IDX"), (2, 0x0d, "type 0x0d"), (3, 1, "says that it holds"), (7, 3, "holds 6")]
    {
        let mut bad = bytes.clone();
        bad[at] = value;
        fs::write(&path, bad).unwrap();
        let error = said(&path);
        assert!(error.contains(part), "{error}");
    }
    fs::write(&path, &bytes).unwrap();
    let labels = folder.path().join("t-labels-idx1-ubyte");
    assert_eq!(Images::labels_beside(&path), None);
    fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 2, 7, 9]).unwrap();
    assert_eq!(Images::labels_beside(&path), Some(labels.clone()));
    let found = Images::read_labels(&labels).unwrap();
    assert_eq!(found, ["7", "9"]);
    let images = read(&path).unwrap();
    assert!(
        images.clone().with_labels(found[..1].to_vec()).unwrap_err().to_string().contains("2 (one")
    );
    assert!(images.to_samples(Some(true)).unwrap_err().to_string().contains("`labels`"));
    let numbers = images.with_labels(found).unwrap().to_samples(Some(false)).unwrap();
    assert_eq!(numbers.values().unwrap().values(), [7.0, 9.0]);
    fs::write(&labels, "a\nb\n").unwrap();
    assert_eq!(Images::read_labels(&labels).unwrap(), ["a", "b"]);
}

#[test]
fn arrays_of_numpy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let array = NpyArray::new(vec![2, 1, 2], vec![0.5f64, -1.0, 2.0, 3.0]).unwrap();
    array.write(&path).unwrap();
    assert!(Images::are_at(&path));
    assert_eq!(read(&path).unwrap().features().unwrap().row(1), [2.0, 3.0]);
    // Bytes are scaled, and colours are channels.
    let mut file = crate::npy::header::write("|u1", &[1, 1, 1, 3]);
    file.extend([0, 51, 255]);
    fs::write(&path, file).unwrap();
    let images = read(&path).unwrap();
    assert_eq!(
        (images.shape(), images.features().unwrap().row(0)),
        (shape(1, 1, 3), &[0.0, 0.2, 1.0][..])
    );
    assert_eq!(images.shape().names(), ["pixel_0_0_red", "pixel_0_0_green", "pixel_0_0_blue"]);
    for (dimensions, values, part) in [
        (vec![4], vec![0.0; 4], "shape [4]"),
        (vec![1, 1, 0], vec![], "no pixels"),
        (vec![1, 1, 1, 9], vec![0.0; 9], "9 channels"),
        (vec![1, 1, 1], vec![f64::NAN], "finite"),
    ] {
        NpyArray::new(dimensions, values).unwrap().write(&path).unwrap();
        let error = said(&path);
        assert!(error.contains(part), "{error}");
    }
}

/// Records of CIFAR: image `i` has the red `i`, the green of its place in the row, and the blue of its row.
fn records(labels: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    for (image, labels) in labels.iter().enumerate() {
        file.extend_from_slice(labels);
        file.extend([image as u8; 1024]);
        file.extend((0..1024).map(|at| (at % 32) as u8));
        file.extend((0..1024).map(|at| (at / 32) as u8));
    }
    file
}

#[test]
fn binary_files_of_cifar() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test_batch.bin");
    let ten = records(&[&[3], &[9]]);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    std::io::Write::write_all(&mut packed, &ten).unwrap();
    fs::write(folder.path().join("test_batch.bin.gz"), packed.finish().unwrap()).unwrap();
    fs::write(&path, &ten).unwrap();
    for path in [path.clone(), folder.path().join("test_batch.bin.gz")] {
        assert!(Images::are_at(&path));
        let images = read(&path).unwrap();
        assert_eq!((images.len(), images.shape()), (2, shape(32, 32, 3)));
        assert_eq!(images.labels().unwrap(), ["3", "9"]);
        let Pixels::Bytes(bytes) = images.pixels() else { panic!("{images:?}") };
        // Row 2, column 5 of the second image.
        assert_eq!(bytes[3 * (1024 + 2 * 32 + 5)..][..3], [1, 5, 2]);
    }
    // A folder of batches is what there is to learn from; those to test on are not part of it.
    assert!(!Images::are_at(folder.path()));
    fs::write(folder.path().join("data_batch_2.bin"), records(&[&[2]])).unwrap();
    fs::write(folder.path().join("data_batch_1.bin"), records(&[&[1]])).unwrap();
    assert!(Images::are_at(folder.path()));
    let mut remarks = Vec::new();
    let all = Images::read(folder.path(), &mut remarks).unwrap();
    assert_eq!(all.labels().unwrap(), ["1", "2"]);
    assert!(remarks[0].contains("2 files"), "{remarks:?}");
    let error = Images::coarse_labels(&path).unwrap_err().to_string();
    assert!(error.contains("one label"), "{error}");
    let error = Images::coarse_labels(&folder.path().join("x.npy")).unwrap_err().to_string();
    assert!(error.contains("no binary file"), "{error}");
}

#[test]
fn cifar_100_has_two_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.bin");
    fs::write(&path, records(&[&[19, 99], &[0, 7], &[4, 0]])).unwrap();
    assert_eq!(read(&path).unwrap().labels().unwrap(), ["99", "7", "0"]);
    assert_eq!(Images::coarse_labels(&path).unwrap(), ["19", "0", "4"]);
    assert_eq!(read(folder.path()).unwrap().len(), 3);
    // Of both kinds in one folder nothing is made.
    fs::write(folder.path().join("data_batch_1.bin"), records(&[&[1]])).unwrap();
    assert!(said(folder.path()).contains("2 labels an image"));
}

#[test]
fn broken_files_of_cifar_say_their_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data_batch_1.bin");
    for file in [records(&[&[1], &[2]])[..6145].to_vec(), Vec::new(), vec![0; 100]] {
        fs::write(&path, &file).unwrap();
        let error = said(&path);
        let length = gradus_base::text::grouped(file.len());
        assert!(error.contains(&length) && error.contains("3,073"), "{error}");
    }
    for (file, part) in [
        (records(&[&[1], &[10]]), "label 10 in image 2, where labels are below 10"),
        (records(&[&[1, 2], &[20, 3]]), "label 20 in image 2, where labels are below 20"),
        (records(&[&[1, 100]]), "label 100 in image 1, where labels are below 100"),
    ] {
        fs::write(&path, file).unwrap();
        let error = said(&path);
        assert!(error.contains(part), "{error}");
    }
}
