"""RDF terms, stream elements and RDF text: documents, stream files, results; and durable files, for all rooms."""
