# SPDX-License-Identifier: Apache-2.0
"""Client-side assignors (KIP-848): a member computes what everybody should have.

`offers` is what members say, `selection` who computes by which assignor, `computation` one such
task and who is fit for it, `choosing` its course; `prepare` and `install` are the two requests of
the member that was asked, and `validation` is what an assignment has to be.
"""
