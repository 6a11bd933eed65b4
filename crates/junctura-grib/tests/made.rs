//! Small messages made octet by octet, as the manual lays them out; the values in them are not sensible.

/// Edition 1, ECMWF: temperature at 500 hPa, member 7 of stream enfo, type pf, 2017-01-02 12:00, step 24.
pub(crate) fn edition1() -> Vec<u8> {
    let mut section1 = vec![0; 52];
    section1[..3].copy_from_slice(&[0, 0, 52]);
    section1[3..10].copy_from_slice(&[128, 98, 145, 255, 0x80, 130, 100]);
    section1[10..12].copy_from_slice(&500_u16.to_be_bytes());
    section1[12..18].copy_from_slice(&[17, 1, 2, 12, 0, 1]);
    section1[18] = 24;
    section1[24] = 21;
    // Local definition 1: class od, type pf, stream enfo, version, member, members.
    section1[40..45].copy_from_slice(&[1, 1, 11, 4, 11]);
    section1[45..49].copy_from_slice(b"0001");
    section1[49..51].copy_from_slice(&[7, 50]);
    let mut section2 = vec![0; 32];
    section2[..6].copy_from_slice(&[0, 0, 32, 0, 255, 0]);
    section2[6..10].copy_from_slice(&[0, 3, 0, 2]);
    let section4 = [0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let length = 8 + section1.len() + section2.len() + section4.len() + 4;
    let mut message = b"GRIB".to_vec();
    message.extend(&(length as u32).to_be_bytes()[1..]);
    message.push(1);
    message.extend(section1);
    message.extend(section2);
    message.extend(section4);
    message.extend(b"7777");
    message
}

/// The same in the form of messages beyond 8 MiB: units of 120 octets, and what that is too long in section 4.
pub(crate) fn edition1_large(data: usize) -> Vec<u8> {
    let mut message = edition1();
    message.truncate(message.len() - 4);
    message.resize(message.len() + data, 0);
    message.extend(b"7777");
    let length = message.len() - 4;
    let units = length.div_ceil(120);
    message[4..7].copy_from_slice(&(0x80_0000 | units as u32).to_be_bytes()[1..]);
    message[92..95].copy_from_slice(&((units * 120 - length) as u32).to_be_bytes()[1..]);
    message
}

fn section2(number: u8, body: &[u8]) -> Vec<u8> {
    let mut section = ((body.len() + 5) as u32).to_be_bytes().to_vec();
    section.push(number);
    section.extend(body);
    section
}

/// Section 4 of a template with temperature on a surface at a step in hours, and what the template adds.
pub(crate) fn product(template: u16, surface: u8, value: u32, hours: u32, more: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0];
    body.extend(template.to_be_bytes());
    body.extend([0, 0, 2, 255, 145, 0, 0, 0, 1]);
    body.extend(hours.to_be_bytes());
    body.extend([surface, 0]);
    body.extend(value.to_be_bytes());
    body.extend([255, 255, 255, 255, 255, 255]);
    body.extend(more);
    section2(4, &body)
}

/// The accumulation of template 8 over so many hours.
pub(crate) fn accumulated(hours: u32) -> Vec<u8> {
    let mut more = vec![0x07, 0xe1, 1, 3, 0, 0, 0, 1, 0, 0, 0, 0];
    more.extend([1, 2, 1]);
    more.extend(hours.to_be_bytes());
    more.extend([255, 0, 0, 0, 0]);
    more
}

/// Edition 2, with as many fields as there are product sections; `local` gives it ECMWF's local section.
pub(crate) fn edition2(local: bool, products: &[Vec<u8>]) -> Vec<u8> {
    let mut sections = section2(
        1,
        &[
            0,
            if local { 98 } else { 7 },
            0,
            0,
            20,
            0,
            1,
            0x07,
            0xe1,
            1,
            2,
            6,
            30,
            0,
            0,
            1,
        ],
    );
    if local {
        sections.extend(section2(2, &[&[0, 1, 0, 1, 0, 11, 4, 11][..], b"0001"].concat()));
    }
    let mut grid = vec![0; 72 - 5];
    grid[4] = 6;
    for (at, number) in [(25, 3_u32), (29, 2)] {
        grid[at..at + 4].copy_from_slice(&number.to_be_bytes());
    }
    sections.extend(section2(3, &grid));
    for product in products {
        sections.extend(product);
        sections.extend(section2(5, &[0; 16]));
        sections.extend(section2(6, &[255]));
        sections.extend(section2(7, &[]));
    }
    whole2(&sections)
}

/// Edition 2 with a field of its own: the bodies of sections 3 (from its number of points), 5, 6 and 7.
pub(crate) fn field(grid: &[u8], packing: &[u8], bitmap: &[u8], data: &[u8]) -> Vec<u8> {
    field_of(grid, &product(0, 1, 0, 0, &[])[5..], packing, bitmap, data)
}

/// The same with the body of section 4.
pub(crate) fn field_of(grid: &[u8], product: &[u8], packing: &[u8], bitmap: &[u8], data: &[u8]) -> Vec<u8> {
    let mut sections = section2(1, &[0; 16]);
    sections.extend(section2(3, &[&[0], grid].concat()));
    sections.extend(section2(4, product));
    sections.extend(section2(5, packing));
    sections.extend(section2(6, bitmap));
    sections.extend(section2(7, data));
    whole2(&sections)
}

fn whole2(sections: &[u8]) -> Vec<u8> {
    let mut message = b"GRIB\0\0\0\x02".to_vec();
    message.extend((16 + sections.len() as u64 + 4).to_be_bytes());
    message.extend(sections);
    message.extend(b"7777");
    message
}

/// Two ensemble fields in messages of their own, and one message of both.
pub(crate) fn some() -> Vec<Vec<u8>> {
    let member = |number| product(1, 105, 137, 6, &[255, number, 50]);
    vec![
        edition1(),
        edition2(true, &[member(1)]),
        edition2(false, &[product(0, 100, 50_000, 0, &[])]),
        edition2(true, &[product(8, 1, 0, 0, &accumulated(24))]),
        edition2(true, &[member(1), member(2)]),
    ]
}
