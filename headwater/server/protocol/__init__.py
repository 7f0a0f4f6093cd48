"""SPARQL over HTTP: the SPARQL 1.1 Protocol, the Graph Store Protocol, service description and VoID.

- `data_service`: what the routes ask for; it may be in another process
- `store_mirror`, `plain_queries`, `modifications`, `update_texts`, `dataset_service`: the service over a `DataSet`
- `data_calls`: a service in another process
- `media_types`, `http_requests`, `sparql_routes`, `graph_store_routes`, `protocol_router`: HTTP
- `result_texts`, `dataset_descriptions`: what is sent
"""
