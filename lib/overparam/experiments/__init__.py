"""Parts of single notebooks or papers that wait here until their pages are rewritten, and then
go.
"""
