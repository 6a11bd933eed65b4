//! Those who want against those who remove, in every order: see `junctura_sim::races`.

use junctura_sim::races::Move::{Die, Offer, Read, Release, Require, Retract, Withdraw};
use junctura_sim::races::{Move, Owner, Scene, orders, play_all};

/// The gate plays all orders, a run without `JUNCTURA_SEEDS=all` a part of them.
fn stride() -> usize {
    let is_all = std::env::var_os("JUNCTURA_SEEDS").is_some_and(|seeds| seeds == "all");
    if is_all { 1 } else { 97 }
}

fn every_order(scenes: impl Iterator<Item = Scene>) {
    let mut played = 0;
    for scene in scenes {
        played += play_all(&scene, stride()).unwrap_or_else(|why| panic!("{why}"));
    }
    println!("{played} orders");
    assert!(played > 0);
}

#[test]
fn one_reader_against_one_who_offers_and_one_who_withdraws() {
    let scripts: [&[Move]; 3] = [
        &[Require, Read, Release, Retract],
        &[Offer, Offer],
        &[Withdraw, Withdraw],
    ];
    every_order(Scene::all(&scripts));
}

#[test]
fn two_readers_against_an_owner_who_changes_their_mind() {
    let scripts: [&[Move]; 3] = [
        &[Require, Read, Release],
        &[Require, Read, Release],
        &[Offer, Withdraw, Offer],
    ];
    every_order(Scene::all(&scripts).filter(|scene| !scene.is_there && !scene.goes_when_released));
}

#[test]
fn a_reader_that_dies_beside_one_that_lives() {
    let scripts: [&[Move]; 3] = [&[Require, Read, Die], &[Require, Read, Release], &[Offer, Withdraw]];
    every_order(Scene::all(&scripts).filter(|scene| !scene.newest_only));
}

#[test]
fn two_who_withdraw_and_a_requirement_that_is_retracted() {
    let scripts: [&[Move]; 3] = [&[Require, Retract, Require], &[Offer, Withdraw], &[Withdraw, Offer]];
    every_order(Scene::all(&scripts).filter(|scene| scene.follows));
}

#[test]
fn every_order_is_there_once() {
    let mut all: Vec<_> = orders(&[3, 2, 2]).collect();
    assert_eq!(all.len(), 210);
    all.dedup();
    assert_eq!(all.len(), 210);
    assert!(
        all.iter()
            .all(|order| order.iter().filter(|&&place| place == 0).count() == 3)
    );
    assert_eq!(Scene::all(&[]).filter(|scene| scene.owner == Owner::Group).count(), 32);
}
