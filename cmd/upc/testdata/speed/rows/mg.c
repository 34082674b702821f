/* The loops of NPB's MG over grids with a pointer for each row: times of gcc -O2 and of upc, see docs/upc.md. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define N 130
#ifdef STATICN
#define n STATICN
#endif
static double ***alloc3(int n1,int n2,int n3){
  double ***p = malloc(sizeof(double**)*n3);
  for(int k=0;k<n3;k++){ p[k]=malloc(sizeof(double*)*n2);
    for(int j=0;j<n2;j++){ p[k][j]=malloc(sizeof(double)*n1); for(int i=0;i<n1;i++) p[k][j][i]=((i*7+j*3+k)%11)*0.125; } }
  return p;
}
static void resid(double ***u,double ***v,double ***r,int n1,int n2,int n3,double a[4]){
  static double u1[1024],u2[1024];
  for(int i3=1;i3<n3-1;i3++) for(int i2=1;i2<n2-1;i2++){
    for(int i1=0;i1<n1;i1++){
      u1[i1]=u[i3][i2-1][i1]+u[i3][i2+1][i1]+u[i3-1][i2][i1]+u[i3+1][i2][i1];
      u2[i1]=u[i3-1][i2-1][i1]+u[i3-1][i2+1][i1]+u[i3+1][i2-1][i1]+u[i3+1][i2+1][i1];
    }
    for(int i1=1;i1<n1-1;i1++)
      r[i3][i2][i1]=v[i3][i2][i1]-a[0]*u[i3][i2][i1]-a[2]*(u2[i1]+u1[i1-1]+u1[i1+1])-a[3]*(u2[i1-1]+u2[i1+1]);
  }
}
static void psinv(double ***r,double ***u,int n1,int n2,int n3,double c[4]){
  double r1[1024],r2[1024];
  for(int i3=1;i3<n3-1;i3++) for(int i2=1;i2<n2-1;i2++){
    for(int i1=0;i1<n1;i1++){
      r1[i1]=r[i3][i2-1][i1]+r[i3][i2+1][i1]+r[i3-1][i2][i1]+r[i3+1][i2][i1];
      r2[i1]=r[i3-1][i2-1][i1]+r[i3-1][i2+1][i1]+r[i3+1][i2-1][i1]+r[i3+1][i2+1][i1];
    }
    for(int i1=1;i1<n1-1;i1++)
      u[i3][i2][i1]=u[i3][i2][i1]+c[0]*r[i3][i2][i1]+c[1]*(r[i3][i2][i1-1]+r[i3][i2][i1+1]+r1[i1])+c[2]*(r2[i1]+r1[i1-1]+r1[i1+1]);
  }
}
static void rprj3(double ***r,int m1k,int m2k,int m3k,double ***s,int m1j,int m2j,int m3j){
  double x1[1024],y1[1024],x2,y2;
  int i1,i2,i3;
  for(int j3=1;j3<m3j-1;j3++){ i3=2*j3-1;
    for(int j2=1;j2<m2j-1;j2++){ i2=2*j2-1;
      for(int j1=1;j1<m1j;j1++){ i1=2*j1-1;
        x1[i1]=r[i3+1][i2][i1]+r[i3+1][i2+2][i1]+r[i3][i2+1][i1]+r[i3+2][i2+1][i1];
        y1[i1]=r[i3][i2][i1]+r[i3+2][i2][i1]+r[i3][i2+2][i1]+r[i3+2][i2+2][i1];
      }
      for(int j1=1;j1<m1j-1;j1++){ i1=2*j1-1;
        y2=r[i3][i2][i1+1]+r[i3+2][i2][i1+1]+r[i3][i2+2][i1+1]+r[i3+2][i2+2][i1+1];
        x2=r[i3+1][i2][i1+1]+r[i3+1][i2+2][i1+1]+r[i3][i2+1][i1+1]+r[i3+2][i2+1][i1+1];
        s[j3][j2][j1]=0.5*r[i3+1][i2+1][i1+1]+0.25*(r[i3+1][i2+1][i1]+r[i3+1][i2+1][i1+2]+x2)+0.125*(x1[i1]+x1[i1+2]+y2)+0.0625*(y1[i1]+y1[i1+2]);
      }
    }
  }
}
static void interp(double ***z,int mm1,int mm2,int mm3,double ***u){
  double z1[1024],z2[1024],z3[1024];
  for(int i3=0;i3<mm3-1;i3++) for(int i2=0;i2<mm2-1;i2++){
    for(int i1=0;i1<mm1;i1++){
      z1[i1]=z[i3][i2+1][i1]+z[i3][i2][i1];
      z2[i1]=z[i3+1][i2][i1]+z[i3][i2][i1];
      z3[i1]=z[i3+1][i2+1][i1]+z[i3+1][i2][i1]+z1[i1];
    }
    for(int i1=0;i1<mm1-1;i1++){
      u[2*i3][2*i2][2*i1]+=z[i3][i2][i1];
      u[2*i3][2*i2][2*i1+1]+=0.5*(z[i3][i2][i1+1]+z[i3][i2][i1]);
    }
    for(int i1=0;i1<mm1-1;i1++){
      u[2*i3][2*i2+1][2*i1]+=0.5*z1[i1];
      u[2*i3][2*i2+1][2*i1+1]+=0.25*(z1[i1]+z1[i1+1]);
    }
    for(int i1=0;i1<mm1-1;i1++){
      u[2*i3+1][2*i2][2*i1]+=0.5*z2[i1];
      u[2*i3+1][2*i2][2*i1+1]+=0.25*(z2[i1]+z2[i1+1]);
    }
    for(int i1=0;i1<mm1-1;i1++){
      u[2*i3+1][2*i2+1][2*i1]+=0.25*z3[i1];
      u[2*i3+1][2*i2+1][2*i1+1]+=0.125*(z3[i1]+z3[i1+1]);
    }
  }
}
static double now(void){struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); return t.tv_sec+t.tv_nsec*1e-9;}
int main(void){
  double a[4]={-8.0/3,0,1.0/6,1.0/12}, c[4]={-3.0/8,1.0/32,-1.0/64,0};
  double ***u=alloc3(N,N,N),***v=alloc3(N,N,N),***r=alloc3(N,N,N),***s=alloc3(N/2+1,N/2+1,N/2+1);
  double b=now(), t[4]={1e9,1e9,1e9,1e9};
  for(int it=0;it<4;it++){
    double t0=now(); resid(u,v,r,N,N,N,a);
    double t1=now(); psinv(r,u,N,N,N,c);
    double t2=now(); rprj3(r,N,N,N,s,N/2+1,N/2+1,N/2+1);
    double t3=now(); interp(s,N/2+1,N/2+1,N/2+1,u); double t4=now();
    double d[4]={t1-t0,t2-t1,t3-t2,t4-t3}; for(int k=0;k<4;k++) if(d[k]<t[k]) t[k]=d[k];
  }
  double sum=0; for(int i=0;i<N;i++)for(int j=0;j<N;j++)for(int k=0;k<N;k++) sum+=u[i][j][k]*((i+j+k)%3);
  printf("%.3f ms  resid %.3f psinv %.3f rprj3 %.3f interp %.3f  sum %.10g\n",(now()-b)*1e3,t[0]*1e3,t[1]*1e3,t[2]*1e3,t[3]*1e3,sum);
  return 0;
}
