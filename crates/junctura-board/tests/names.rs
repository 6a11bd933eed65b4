//! Tables of names have a limit.

use junctura_board::NameTable;

#[test]
fn names_beyond_the_limit_are_one() {
    let mut table: NameTable<u64, u64> = NameTable::new(3);
    assert!(table.is_empty());
    for (key, place) in [(7, 0), (8, 1), (9, 2), (10, 2), (7, 0), (9, 2)] {
        assert_eq!(table.place(key, || format!("name {key}")), place);
        *table.count(place) += 1;
    }
    let all: Vec<_> = table.iter().map(|(name, &count)| (name.to_owned(), count)).collect();
    let expected = [("name 7", 2), ("name 8", 1), ("others", 3)];
    assert_eq!(all, expected.map(|(name, count)| (name.to_owned(), count)));
    assert_eq!(table.len(), 3);
}
