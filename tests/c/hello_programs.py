"""A first program in C, C++ and Fortran, and what builds it."""

from __future__ import annotations

HELLO = {
    "C": """
#include <junctura.h>
#include <stdio.h>
int main(void) {
    jct_pool_t *pool;
    if (jct_pool_open("", "schema=free", &pool))
        return 1;
    puts("hello");
    jct_pool_close(pool);
    return 0;
}
""",
    "CXX": """
#include <iostream>
#include <junctura.hpp>
int main() {
    junctura::Pool pool("", "schema=free");
    pool.offer({{"name", "greeting"}}, std::string("hello"));
    std::cout << pool.demand("name=greeting").text() << std::endl;
}
""",
    "Fortran": """
program hello
  use junctura
  implicit none
  type(pool_t) :: pool
  type(attributes_t) :: key
  type(object_t) :: object
  call pool%open(options='schema=free')
  call key%set('name', 'greeting')
  call pool%offer(key, 'hello')
  call pool%demand('name=greeting', object)
  print '(a)', object%text()
end program
""",
}
FILES = {"C": "hello.c", "CXX": "hello.cpp", "Fortran": "hello.f90"}
COMPILERS = {"C": "gcc", "CXX": "g++", "Fortran": "gfortran"}
TARGETS = {"C": "Junctura::junctura", "CXX": "Junctura::cpp", "Fortran": "Junctura::fortran"}


def cmake_lists(language: str) -> str:
    """The CMakeLists.txt that builds the program."""
    return (
        "cmake_minimum_required(VERSION 3.16)\n"
        f"project(user {language})\n"
        "find_package(Junctura 0.1 REQUIRED)\n"
        f"add_executable(hello {FILES[language]})\n"
        f"target_link_libraries(hello PRIVATE {TARGETS[language]})\n"
    )
