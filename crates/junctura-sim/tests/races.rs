//! Those who want against those who remove, in every order: see `junctura_sim::races`.

use junctura_sim::races::Move::{Die, Offer, Read, Release, Require, Retract, Withdraw};
use junctura_sim::races::{Owner, Scene, orders, play_all};

/// Of the orders, which differ little from one to the next, the gate plays each tenth, a run without `JUNCTURA_SEEDS=all` fewer,
/// and `make soak` all.
fn stride() -> usize {
    let is_gate = std::env::var_os("JUNCTURA_SEEDS").is_some_and(|seeds| seeds == "all");
    if is_gate { 10 } else { 97 }
}

fn play(scenes: impl Iterator<Item = Scene>, stride: usize) {
    let mut played = 0;
    for (index, scene) in scenes.enumerate() {
        played += play_all(&scene, index % stride, stride).unwrap_or_else(|why| panic!("{why}"));
    }
    println!("{played} orders");
    assert!(played > 0);
}

fn one_reader() -> impl Iterator<Item = Scene> {
    Scene::all(&[
        &[Require, Read, Release, Retract],
        &[Offer, Offer],
        &[Withdraw, Withdraw],
    ])
}

fn two_readers() -> impl Iterator<Item = Scene> {
    let scenes = Scene::all(&[
        &[Require, Read, Release],
        &[Require, Read, Release],
        &[Offer, Withdraw, Offer],
    ]);
    scenes.filter(|scene| !scene.is_there && !scene.goes_when_released)
}

fn a_death() -> impl Iterator<Item = Scene> {
    let scenes = Scene::all(&[&[Require, Read, Die], &[Require, Read, Release], &[Offer, Withdraw]]);
    scenes.filter(|scene| !scene.newest_only)
}

fn a_retraction() -> impl Iterator<Item = Scene> {
    let scenes = Scene::all(&[&[Require, Retract, Require], &[Offer, Withdraw], &[Withdraw, Offer]]);
    scenes.filter(|scene| scene.follows)
}

#[test]
fn one_reader_against_one_who_offers_and_one_who_withdraws() {
    play(one_reader(), stride());
}

#[test]
fn two_readers_against_an_owner_who_changes_their_mind() {
    play(two_readers(), stride());
}

#[test]
fn a_reader_that_dies_beside_one_that_lives() {
    play(a_death(), stride());
}

#[test]
fn two_who_withdraw_and_a_requirement_that_is_retracted() {
    play(a_retraction(), stride());
}

#[test]
#[ignore = "long: make soak"]
fn soak_every_order() {
    play(
        one_reader().chain(two_readers()).chain(a_death()).chain(a_retraction()),
        1,
    );
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
