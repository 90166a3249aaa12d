"""The reviewer's site: every executed notebook and every verdict, from the committed records and
nothing else.
"""
