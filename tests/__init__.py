"""The tests. The instruction level comes before numpy, as on the command line, so that both compute the same bits."""

from fedrepro import cpu

cpu.pin()
