"""The service: solves problems over HTTP, in a queue and within limits, and serves a page to edit and solve them.

limits    what clients may ask for
specs     problems of clients, which may name no files
queue     jobs, each in a process of its own
cards     what the service tells about problems, jobs and solvers
routes    the paths of the API; the OpenAPI document is made from their table
guard     who may ask, and how slowly
server    uvicorn
page/     the page in the browser
"""
