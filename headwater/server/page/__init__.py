"""The page: what the server does, for people who would rather look than read.

- `page_access`: what the page asks for; `embedded` answers from an engine in the same process
- `share_links`, `page_troubles`, `page_rates`, `answer_charts`, `answer_differences`: decisions without a browser
- `page_frame`, `page_parts`, `query_editor`, `query_tabs` and the views: what is drawn
- `page_mount`: the page as a part of a FastAPI app, and a server for it alone
"""
