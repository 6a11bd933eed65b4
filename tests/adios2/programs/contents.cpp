// Reads the contents of a step from standard input: prints the number of its entries, or why they are refused.
#include <exception>
#include <iostream>
#include <iterator>

#include "step_contents.hpp"

int main() {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    try {
        std::cout << junctura_adios2::read_contents(text).size() << '\n';
    } catch (const std::exception &error) {
        std::cout << "refused: " << error.what() << '\n';
    }
}
