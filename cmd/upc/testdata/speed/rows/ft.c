/* FFTs of 64 points, 16 at a time, over rows that pointers lead to, as in NPB's FT; see mg.c. */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <time.h>
typedef struct { double re, im; } cx;
#define N 64
#define BL 16
static cx **x[1]; static cx ***g; static cx w[2*N];
static cx scr1[N][BL+2], scr2[N][BL+2];
static cx **r1, **r2;
static void fftz2(int l,int m,int n,int ny,cx **x,cx **y){
  int n1=n/2, lk=1<<(l-1), li=1<<(m-l), lj=2*lk, ku=li;
  for(int i=0;i<=li-1;i++){
    int i11=i*lk,i12=i11+n1,i21=i*lj,i22=i21+lk;
    cx u1=w[ku+i];
    for(int k=0;k<=lk-1;k++)
      for(int j=0;j<ny;j++){
        double a=x[i11+k][j].re,b=x[i11+k][j].im,c=x[i12+k][j].re,d=x[i12+k][j].im;
        y[i21+k][j].re=a+c; y[i21+k][j].im=b+d;
        y[i22+k][j].re=u1.re*(a-c)-u1.im*(b-d);
        y[i22+k][j].im=u1.re*(b-d)+u1.im*(a-c);
      }
  }
}
static void cfftz(int m,int n,cx **x,cx **y){
  for(int l=1;l<=m;l+=2){
    fftz2(l,m,n,BL,x,y);
    if(l==m){ for(int j=0;j<n;j++) for(int i=0;i<BL;i++) x[j][i]=y[j][i]; return; }
    fftz2(l+1,m,n,BL,y,x);
  }
}
static double now(void){struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); return t.tv_sec+t.tv_nsec*1e-9;}
int main(void){
  g=malloc(N*sizeof *g);
  for(int k=0;k<N;k++){ g[k]=malloc(N*sizeof *g[k]); for(int j=0;j<N;j++){ g[k][j]=malloc(N*sizeof(cx)); for(int i=0;i<N;i++){ g[k][j][i].re=((i*7+j*3+k)%11)*0.125; g[k][j][i].im=((i*5+j*2+k)%7)*0.25; } } }
  r1=malloc(N*sizeof *r1); r2=malloc(N*sizeof *r2);
  for(int i=0;i<N;i++){ r1[i]=scr1[i]; r2[i]=scr2[i]; }
  for(int t=1,ku=1;t<=6;t++,ku*=2) for(int i=0;i<ku;i++){ double a=i*M_PI/ku; w[ku+i].re=cos(a); w[ku+i].im=sin(a); }
  double b=now(),best=1e9;
  for(int it=0;it<12;it++){
    double t0=now();
    for(int k=0;k<N;k++) for(int jj=0;jj<N;jj+=BL){
      for(int j=0;j<BL;j++) for(int i=0;i<N;i++) r1[i][j]=g[k][j+jj][i];
      cfftz(6,N,r1,r2);
      for(int j=0;j<BL;j++) for(int i=0;i<N;i++) { g[k][j+jj][i].re=r1[i][j].re*0.125; g[k][j+jj][i].im=r1[i][j].im*0.125; }
    }
    for(int k=0;k<N;k++) for(int ii=0;ii<N;ii+=BL){
      for(int j=0;j<N;j++) for(int i=0;i<BL;i++) r1[j][i]=g[k][j][i+ii];
      cfftz(6,N,r1,r2);
      for(int j=0;j<N;j++) for(int i=0;i<BL;i++) { g[k][j][i+ii].re=r1[j][i].re*0.125; g[k][j][i+ii].im=r1[j][i].im*0.125; }
    }
    double d=now()-t0; if(d<best)best=d;
  }
  double s=0; for(int k=0;k<N;k++)for(int j=0;j<N;j++)for(int i=0;i<N;i++) s+=g[k][j][i].re*((i+j+k)%3)+g[k][j][i].im;
  printf("%.3f ms  pass %.3f  sum %.10g\n",(now()-b)*1e3,best*1e3,s);
  return 0;
}
