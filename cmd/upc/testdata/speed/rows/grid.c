/* Six points on a grid with a pointer for each row; see mg.c. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define N 100
static double ***a,***b;
static double ***mk(void){double ***p=malloc(N*sizeof *p); for(int i=0;i<N;i++){p[i]=malloc(N*sizeof *p[i]); for(int j=0;j<N;j++){p[i][j]=malloc(N*sizeof(double)); for(int k=0;k<N;k++)p[i][j][k]=(i*7+j*3+k)%11;}} return p;}
static void step(void){
  for(int i=1;i<N-1;i++)for(int j=1;j<N-1;j++)for(int k=1;k<N-1;k++)
    b[i][j][k]=(a[i-1][j][k]+a[i+1][j][k]+a[i][j-1][k]+a[i][j+1][k]+a[i][j][k-1]+a[i][j][k+1])/6;
}
static double now(void){struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); return t.tv_sec+t.tv_nsec*1e-9;}
int main(void){ a=mk();b=mk(); double best=1e9,t=now();
 for(int it=0;it<40;it++){double t0=now(); step(); double d=now()-t0; if(d<best)best=d; double ***c=a;a=b;b=c;}
 double s=0; for(int i=0;i<N;i++)for(int j=0;j<N;j++)for(int k=0;k<N;k++)s+=a[i][j][k]*((i+j+k)%3);
 printf("%.3f ms pass %.3f sum %.10g\n",(now()-t)*1e3,best*1e3,s); return 0;}
