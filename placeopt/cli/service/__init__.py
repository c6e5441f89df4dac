"""The service: solves problems over HTTP, in a queue and within limits, and serves a page to edit and solve them.

limits    what clients may ask for
specs     problems of clients, which may name no files and are compiled within limits
queue     jobs, each in a separate process
cards     the answers: facts of problems, jobs and solvers
routes    the paths of the API; the OpenAPI document is made from their table
server    uvicorn; tokens, hosts and origins; time limits for slow clients
page/     the page in the browser
"""
