struct pair { int a; double b; };
struct big { int v[5]; };
