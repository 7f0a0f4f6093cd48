"""The page: what the server does, for people who would rather look than read.

- `page_access`: what the page asks for; `embedded_access` answers from an engine in the same process
- `answer_history`, `recent_elements`, `query_preview`: what was answered, what has come, what a query would answer
- `completion_words`, `share_links`, `page_troubles`, `answer_charts`, `answer_differences`: decisions without a browser
- `page_frame`, `page_parts`, `query_editor` and the views: what is drawn
- `page_mount`: the page as a part of a FastAPI app, and a server for it alone
"""
