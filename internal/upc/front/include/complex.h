#ifndef _COMPLEX_H
#define _COMPLEX_H
#define complex _Complex
#define _Complex_I 1.0iF
#define I _Complex_I
#define CMPLX(x, y) __builtin_complex((double)(x), (double)(y))
#define CMPLXF(x, y) ((float _Complex)__builtin_complex((float)(x), (float)(y)))
#define CMPLXL CMPLX
double _Complex cacos(double _Complex z);
float _Complex cacosf(float _Complex z);
#define cacosl cacos
double _Complex casin(double _Complex z);
float _Complex casinf(float _Complex z);
#define casinl casin
double _Complex catan(double _Complex z);
float _Complex catanf(float _Complex z);
#define catanl catan
double _Complex ccos(double _Complex z);
float _Complex ccosf(float _Complex z);
#define ccosl ccos
double _Complex csin(double _Complex z);
float _Complex csinf(float _Complex z);
#define csinl csin
double _Complex ctan(double _Complex z);
float _Complex ctanf(float _Complex z);
#define ctanl ctan
double _Complex cacosh(double _Complex z);
float _Complex cacoshf(float _Complex z);
#define cacoshl cacosh
double _Complex casinh(double _Complex z);
float _Complex casinhf(float _Complex z);
#define casinhl casinh
double _Complex catanh(double _Complex z);
float _Complex catanhf(float _Complex z);
#define catanhl catanh
double _Complex ccosh(double _Complex z);
float _Complex ccoshf(float _Complex z);
#define ccoshl ccosh
double _Complex csinh(double _Complex z);
float _Complex csinhf(float _Complex z);
#define csinhl csinh
double _Complex ctanh(double _Complex z);
float _Complex ctanhf(float _Complex z);
#define ctanhl ctanh
double _Complex cexp(double _Complex z);
float _Complex cexpf(float _Complex z);
#define cexpl cexp
double _Complex clog(double _Complex z);
float _Complex clogf(float _Complex z);
#define clogl clog
double _Complex csqrt(double _Complex z);
float _Complex csqrtf(float _Complex z);
#define csqrtl csqrt
double cabs(double _Complex z);
float cabsf(float _Complex z);
#define cabsl cabs
double carg(double _Complex z);
float cargf(float _Complex z);
#define cargl carg
double creal(double _Complex z);
float crealf(float _Complex z);
#define creall creal
double cimag(double _Complex z);
float cimagf(float _Complex z);
#define cimagl cimag
double _Complex conj(double _Complex z);
float _Complex conjf(float _Complex z);
#define conjl conj
double _Complex cproj(double _Complex z);
float _Complex cprojf(float _Complex z);
#define cprojl cproj
double _Complex cpow(double _Complex x, double _Complex y);
float _Complex cpowf(float _Complex x, float _Complex y);
#define cpowl cpow
#endif
