"""What goes out: which addresses may be asked, by a client that checks them, with credentials that belong to them."""
