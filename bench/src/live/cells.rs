//! The number that the page paints as black and white cells, read back from a picture of the screen.
//!
//! `web/src/paint/interval_cells.ts` says how it is painted: 35 cells of 4 by 4 pixels in the lower
//! left corner; one white, one black, 32 bits with the most significant first, one for even parity.

/// Cells of a number.
const CELLS: usize = 35;

/// Width and height of a cell in pixels.
const CELL: usize = 4;

/// The size of the picture in pixels.
pub(super) const SIZE: (u32, u32) = (140, 4);

/// The number in a picture of [`SIZE`]; `None` if it shows none.
pub(super) fn read(picture: &[u8]) -> Option<u32> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(picture)).read_info().ok()?;
    let mut pixels = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut pixels).ok()?;
    let samples = frame.color_type.samples();
    let middle = pixels.get(CELL / 2 * frame.line_size..)?;
    let cells: Option<Vec<bool>> = (0..CELLS)
        .map(|cell| Some(*middle.get((cell * CELL + CELL / 2) * samples)? > 127))
        .collect();
    number(&cells?)
}

/// The number that cells stand for, white being true.
fn number(cells: &[bool]) -> Option<u32> {
    let [true, false, bits @ .., parity] = cells else { return None };
    let number = bits.iter().fold(0, |sum, &bit| sum << 1 | u32::from(bit));
    let even = (number.count_ones() % 2 == 1) == *parity;
    even.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(number: u32) -> Vec<u8> {
        let mut cells = vec![true, false];
        cells.extend((0..32).rev().map(|bit| number >> bit & 1 == 1));
        cells.push(number.count_ones() % 2 == 1);
        let row = cells.iter().flat_map(|&white| [if white { 255 } else { 0 }; 3 * CELL]);
        let pixels: Vec<u8> = row.collect::<Vec<_>>().repeat(CELL);
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, SIZE.0, SIZE.1);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
        file
    }

    #[test]
    fn a_painted_number_is_read_back() {
        for number in [0, 1, 0x8000_0000, 0xdead_beef, u32::MAX] {
            assert_eq!(read(&picture(number)), Some(number));
        }
    }

    #[test]
    fn a_picture_without_cells_shows_no_number() {
        assert_eq!(read(b"no picture"), None);
        assert_eq!(number(&[true; CELLS]), None);
        let mut cells = [false; CELLS];
        cells[0] = true;
        assert_eq!(number(&cells), Some(0));
        cells[7] = true;
        assert_eq!(number(&cells), None, "parity");
    }
}
