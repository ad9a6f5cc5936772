//! A table of text, no wider than a terminal.

use alloc::string::String;
use alloc::vec::Vec;

/// Columns of a terminal that every table keeps to, unless a single column is
/// wider by itself.
pub const WIDTH: usize = 100;

const GAP: usize = 2;

/// Where in its column a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows under headings.
///
/// When all columns together are wider than the terminal, the table is written
/// as several, one below the other, each with the first column again.
#[derive(Debug, Clone)]
pub struct Table {
    headings: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings and no rows.
    #[must_use]
    pub fn new<H: Into<String>>(headings: impl IntoIterator<Item = (H, Align)>) -> Table {
        let headings = headings.into_iter().map(|(text, align)| (text.into(), align)).collect();
        Table { headings, rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty, surplus ones are not shown.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends the table to `out`, without the columns in which every cell is empty.
    pub fn write(&self, out: &mut String) {
        let widths: Vec<usize> = self
            .headings
            .iter()
            .enumerate()
            .map(|(column, (heading, _))| self.width(column, heading))
            .collect();
        let shown: Vec<usize> =
            (0..widths.len()).filter(|&column| column == 0 || !self.is_blank(column)).collect();
        let Some((&first, mut rest)) = shown.split_first() else { return };
        let width_of = |column: usize| widths.get(column).copied().unwrap_or(0);
        let mut panel = Vec::new();
        loop {
            panel.clear();
            panel.push(first);
            let mut total = width_of(first);
            while let Some((&next, after)) = rest.split_first() {
                total = total.saturating_add(GAP).saturating_add(width_of(next));
                if total > WIDTH && panel.len() > 1 {
                    break;
                }
                panel.push(next);
                rest = after;
            }
            self.write_panel(out, &panel, &widths);
            if rest.is_empty() {
                return;
            }
            out.push('\n');
        }
    }

    fn width(&self, column: usize, heading: &str) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(heading.chars().count())
    }

    fn is_blank(&self, column: usize) -> bool {
        self.rows.iter().all(|row| row.get(column).is_none_or(String::is_empty))
    }

    fn write_panel(&self, out: &mut String, panel: &[usize], widths: &[usize]) {
        let headings = |column: usize| self.headings.get(column).map_or("", |(text, _)| text);
        self.write_row(out, panel, widths, headings);
        for row in &self.rows {
            self.write_row(out, panel, widths, |column| row.get(column).map_or("", String::as_str));
        }
    }

    fn write_row<'a>(
        &self,
        out: &mut String,
        panel: &[usize],
        widths: &[usize],
        cell: impl Fn(usize) -> &'a str,
    ) {
        let mut owed = 0;
        for &column in panel {
            let text = cell(column);
            let align = self.headings.get(column).map_or(Align::Left, |&(_, align)| align);
            let width = widths.get(column).copied().unwrap_or(0);
            let padding = width.saturating_sub(text.chars().count());
            let (before, after) = match align {
                Align::Left => (0, padding),
                Align::Right => (padding, 0),
            };
            owed += before;
            // Blanks are owed until something follows them, so no line ends in one.
            if !text.is_empty() {
                out.extend(core::iter::repeat_n(' ', owed));
                owed = 0;
                out.push_str(text);
            }
            owed += after + GAP;
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn written(table: &Table) -> String {
        let mut out = String::new();
        table.write(&mut out);
        out
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([("name", Align::Left), ("n", Align::Right)]);
        table.row(["a".into(), "1000".into()]);
        table.row(["longer".into(), "1".into()]);
        assert_eq!(written(&table), "name       n\na       1000\nlonger     1\n");
    }

    #[test]
    fn a_column_without_cells_is_left_out_and_no_line_ends_in_blanks() {
        let mut table = Table::new([("a", Align::Left), ("b", Align::Left), ("c", Align::Left)]);
        table.row(["x".into(), String::new(), "yyy".into()]);
        table.row(["xx".into()]);
        assert_eq!(written(&table), "a   c\nx   yyy\nxx\n");
    }

    #[test]
    fn width_counts_characters_not_bytes() {
        let mut table = Table::new([("", Align::Left), ("x", Align::Left)]);
        table.row(["™".into(), "1".into()]);
        table.row(["ab".into(), "2".into()]);
        assert_eq!(written(&table), "    x\n™   1\nab  2\n");
    }

    #[test]
    fn a_wide_table_becomes_several_with_the_first_column_again() {
        let headings = (0..40).map(|column| (format!("{column:03}"), Align::Right));
        let mut table = Table::new(headings);
        table.row((0..40).map(|column| format!("{column}")));
        let text = written(&table);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let panels: Vec<&str> = text.split("\n\n").collect();
        assert_eq!(panels.len(), 3, "{text}");
        assert!(panels.iter().all(|panel| panel.starts_with("000  ")), "{text}");
        for column in 0..40 {
            assert!(text.contains(&format!("{column:03}")), "{column}");
        }
    }

    #[test]
    fn a_cell_wider_than_the_terminal_still_ends() {
        let mut table = Table::new([("a", Align::Left), ("b", Align::Left), ("c", Align::Left)]);
        table.row(["x".into(), "y".repeat(300), "z".repeat(300)]);
        let text = written(&table);
        assert_eq!(text.lines().count(), 5);
        assert!(text.contains(&"y".repeat(300)) && text.contains(&"z".repeat(300)));
    }
}
